/** Ed25519 of the platform; a library is loaded only if the platform has none. */
import type { Bytes } from "../mechanisms/packing.js";
import { load } from "../loading.js";

/** Whether this key made a signature over a message. */
export async function isSigned(key: Bytes, signature: Bytes, message: Bytes): Promise<boolean> {
  let publicKey: CryptoKey;
  try {
    publicKey = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "NotSupportedError") throw error;
    const { verifyAsync } = await load("ed25519");
    return verifyAsync(signature, message, key, { zip215: false });
  }
  return crypto.subtle.verify("Ed25519", publicKey, signature, message);
}

/**
 * Sealing: encrypts a payload into a report that only the aggregator can open (HPKE, RFC 9180).
 *
 * Base mode, HKDF-SHA256, AES-128-GCM, single shot; DHKEM(X25519, HKDF-SHA256) or X-Wing, as the
 * metric requires. X25519 comes from the platform; if the platform lacks it, from a library that is
 * loaded only then.
 */
import {
  AEAD_AES_128_GCM,
  CipherSuite,
  KDF_HKDF_SHA256,
  KEM_DHKEM_X25519_HKDF_SHA256,
  type KEM,
  type KEMFactory,
} from "hpke";

import { BadParameter } from "../errors.js";
import { load } from "../loading.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";

/**
 * The bytes that sealing adds to a payload: the encapsulated key before it, the authentication tag
 * after it.
 */
export const SEAL_BYTES = { x25519: 32 + 16, "x-wing": 1088 + 32 + 16 } as const;

// WebKitGTK refuses one key pair in 256, whose private key begins with a zero
// (https://bugs.webkit.org/show_bug.cgi?id=307095). This many refusals in a row happen in one seal
// of 10**19.
const TRIES = 8;

/** How a metric's reports are sealed. */
export type Kem = keyof typeof SEAL_BYTES;

const suites = new Map<Kem, Promise<CipherSuite>>();

/**
 * The context that a report or filler is bound to: it cannot be opened under another stream or
 * epoch.
 */
export function sealInfo(stream: string, epoch: number, purpose = "report"): Bytes {
  return new TextEncoder().encode(`hubbub/1 ${purpose}|${stream}|${epoch}`);
}

/**
 * The sealed payload, SEAL_BYTES longer than `payload`. publicKey: 32 bytes of X25519, or 1,216 of
 * X-Wing.
 *
 * @throws BadParameter the key is none, or protects nothing.
 */
export async function seal(
  payload: Bytes,
  publicKey: Bytes,
  info: Bytes,
  kem: Kem = "x25519",
): Promise<Bytes> {
  const opening = suites.get(kem) ?? suiteOf(kem);
  suites.set(kem, opening);
  // A suite that failed to load is loaded again for the next report.
  opening.catch(() => suites.delete(kem));
  const suite = await opening;
  try {
    const key = await suite.DeserializePublicKey(publicKey);
    const { encapsulatedSecret, ciphertext } = await suite.Seal(key, payload, { info });
    return concatenated(encapsulatedSecret, ciphertext);
  } catch (error) {
    throw new BadParameter("an opening key is invalid; build the bundle again", { cause: error });
  }
}

/** The HPKE suite with this KEM; loads an implementation in JavaScript if the platform has none. */
export async function suiteOf(kem: Kem): Promise<CipherSuite> {
  return new CipherSuite(await kemOf(kem), KDF_HKDF_SHA256, AEAD_AES_128_GCM);
}

async function kemOf(kem: Kem): Promise<KEMFactory> {
  const native = kem === "x25519" && (await hasX25519());
  if (native) return x25519;
  const fallback = await load("fallback");
  return kem === "x25519" ? fallback.KEM_DHKEM_X25519_HKDF_SHA256 : fallback.KEM_MLKEM768_X25519;
}

/** The platform's X25519; if the platform refuses to generate a key pair, it is asked again. */
function x25519(): KEM<CryptoKey> {
  const kem = KEM_DHKEM_X25519_HKDF_SHA256();
  return {
    ...kem,
    async GenerateKeyPair(extractable) {
      for (let tries = TRIES - 1; ; tries -= 1) {
        try {
          return await kem.GenerateKeyPair(extractable);
        } catch (error) {
          if (!tries) throw error;
        }
      }
    },
  };
}

async function hasX25519(): Promise<boolean> {
  try {
    await crypto.subtle.importKey("raw", new Uint8Array(32).fill(9), "X25519", false, []);
    return true;
  } catch {
    return false;
  }
}

/**
 * Sealing: a payload becomes a report that only the aggregator can open (HPKE, RFC 9180).
 *
 * Base mode, HKDF-SHA256, AES-128-GCM, single shot; DHKEM(X25519, HKDF-SHA256) or X-Wing, as the
 * metric says. X25519 is the platform's; where it has none, a library's that is loaded only there.
 */
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";

import { BadParameter } from "../errors.js";
import { joined, type Bytes } from "../mechanisms/packing.js";

/** What sealing adds to a payload: the encapsulated key in front, the authentication tag behind. */
export const SEAL_BYTES = { x25519: 32 + 16, "x-wing": 1088 + 32 + 16 } as const;

/** How a metric's reports are sealed. */
export type Kem = keyof typeof SEAL_BYTES;

const known = new Map<Kem, Promise<CipherSuite>>();

/** What a report is bound to: moved to another metric or day it does not open. */
export function sealInfo(stream: string, epoch: number): Bytes {
  return new TextEncoder().encode(`hubbub/1 report|${stream}|${epoch}`);
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
  const made = known.get(kem) ?? hpke(kem);
  known.set(kem, made);
  const suite = await made;
  try {
    const key = await suite.kem.deserializePublicKey(publicKey);
    const sealed = await suite.seal({ recipientPublicKey: key, info }, payload);
    return joined(new Uint8Array(sealed.enc), new Uint8Array(sealed.ct));
  } catch (error) {
    throw new BadParameter("an opening key is none worth sealing to", { cause: error });
  }
}

async function hpke(kem: Kem): Promise<CipherSuite> {
  const rest = { kdf: new HkdfSha256(), aead: new Aes128Gcm() };
  if (kem === "x-wing") {
    // ML-KEM in JavaScript, loaded where a metric asks for it alone.
    const { XWing } = await import("@hpke/hybridkem-x-wing");
    return new CipherSuite({ kem: new XWing(), ...rest });
  }
  if (await hasX25519()) return new CipherSuite({ kem: new DhkemX25519HkdfSha256(), ...rest });
  const { DhkemX25519HkdfSha256: Fallback } = await import("@hpke/dhkem-x25519");
  return new CipherSuite({ kem: new Fallback(), ...rest });
}

async function hasX25519(): Promise<boolean> {
  try {
    await crypto.subtle.importKey("raw", new Uint8Array(32).fill(9), "X25519", false, []);
    return true;
  } catch {
    return false;
  }
}

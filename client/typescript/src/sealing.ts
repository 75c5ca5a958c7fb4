/**
 * Sealing: a payload becomes a report that only the aggregator can open (HPKE, RFC 9180).
 *
 * Base mode, HKDF-SHA256, AES-128-GCM, single shot; DHKEM(X25519, HKDF-SHA256) or X-Wing, as the
 * metric says.
 */
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";

import { BadParameter } from "./errors.js";

/** What sealing adds to a payload: the encapsulated key in front, the authentication tag behind. */
export const SEAL_BYTES = { x25519: 32 + 16, "x-wing": 1088 + 32 + 16 } as const;

/** How a metric's reports are sealed. */
export type Kem = keyof typeof SEAL_BYTES;

/** What a report is bound to: moved to another metric or day it does not open. */
export function sealInfo(stream: string, epoch: number): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`hubbub/1 report|${stream}|${epoch}`);
}

/**
 * The sealed payload, SEAL_BYTES longer than `payload`. publicKey: 32 bytes of X25519, or 1,216 of
 * X-Wing.
 *
 * @throws BadParameter the key is none, or protects nothing.
 */
export async function seal(
  payload: Uint8Array<ArrayBuffer>,
  publicKey: Uint8Array<ArrayBuffer>,
  info: Uint8Array<ArrayBuffer>,
  kem: Kem = "x25519",
): Promise<Uint8Array<ArrayBuffer>> {
  const suite = await hpke(kem);
  try {
    const key = await suite.kem.deserializePublicKey(publicKey);
    const sealed = await suite.seal({ recipientPublicKey: key, info }, payload);
    return joined(new Uint8Array(sealed.enc), new Uint8Array(sealed.ct));
  } catch (error) {
    throw new BadParameter("an opening key is none worth sealing to", { cause: error });
  }
}

async function hpke(kem: Kem): Promise<CipherSuite> {
  return new CipherSuite({
    kem: kem === "x-wing" ? await xWing() : new DhkemX25519HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes128Gcm(),
  });
}

/** ML-KEM in JavaScript, loaded where a metric asks for it alone. */
async function xWing() {
  const { XWing } = await import("@hpke/hybridkem-x-wing");
  return new XWing();
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

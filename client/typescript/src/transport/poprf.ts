/**
 * The pseudorandom function of tokens (RFC 9497): mode 2 (partially oblivious),
 * ristretto255-SHA512.
 *
 * The curve is an argument. If this module imported it, the bundler would put the errors that both
 * share with the page into one more file.
 */
import { BadParameter } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";

/** The curve of `curve.ts`, which computes the function. */
export type Oprf = typeof import("./curve.js").ristretto255_oprf;

/**
 * A blinded input: the input, the factor that removes the blinding, and the element that the issuer
 * receives.
 */
export interface Blinded {
  readonly input: Bytes;
  readonly blind: Bytes;
  readonly element: Bytes;
}

/**
 * The input, blinded by a scalar that is drawn for this input alone.
 *
 * @throws BadParameter the public key is invalid.
 */
export function blinded(oprf: Oprf, input: Bytes, publicKey: Bytes, info: Bytes): Blinded {
  try {
    const { blind, blinded: element } = oprf.poprf(info).blind(input, publicKey);
    return { input, blind: Uint8Array.from(blind), element: Uint8Array.from(element) };
  } catch (error) {
    throw new BadParameter("the issuer's key in the bundle is invalid", { cause: error });
  }
}

/**
 * The outputs, after a check of the proof that the issuer used this public key for all of them.
 *
 * @throws BadParameter the proof does not hold, or an element is invalid.
 */
export function outputsOf(
  oprf: Oprf,
  inputs: readonly Blinded[],
  evaluated: readonly Bytes[],
  proof: Bytes,
  publicKey: Bytes,
  info: Bytes,
): Bytes[] {
  const suite = oprf.poprf(info);
  const items = inputs.map(({ input, blind, element }, index) => {
    return { input, blind, blinded: element, evaluated: evaluated[index] ?? new Uint8Array() };
  });
  try {
    const { tweakedKey } = suite.blind(new Uint8Array(1), publicKey);
    return suite.finalizeBatch(items, proof, tweakedKey).map((output) => Uint8Array.from(output));
  } catch (error) {
    throw new BadParameter("the issuer's proof does not fit its key in the bundle", {
      cause: error,
    });
  }
}

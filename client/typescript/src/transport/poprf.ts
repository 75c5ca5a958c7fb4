/**
 * The function behind tokens, of RFC 9497: mode 2 (partly oblivious), ristretto255-SHA512.
 *
 * The curve is handed in: what is loaded by itself shares no error with what every page loads, which
 * would be cut out as one file more.
 */
import { BadParameter } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";

/** Who works it out, of `curve.ts`. */
export type Oprf = typeof import("./curve.js").ristretto255_oprf;

/** An input on its way: what undoes the blinding, and what the issuer sees. */
export interface Blinded {
  readonly input: Bytes;
  readonly blind: Bytes;
  readonly element: Bytes;
}

/**
 * An input, blinded by a scalar that is drawn for it alone.
 *
 * @throws BadParameter the public key is none.
 */
export function blinded(oprf: Oprf, input: Bytes, publicKey: Bytes, info: Bytes): Blinded {
  try {
    const { blind, blinded: element } = oprf.poprf(info).blind(input, publicKey);
    return { input, blind: Uint8Array.from(blind), element: Uint8Array.from(element) };
  } catch (error) {
    throw new BadParameter("the issuer's key in the bundle is none", { cause: error });
  }
}

/**
 * The outputs, once the proof has shown that all were evaluated with this public key.
 *
 * @throws BadParameter the proof is none of this, or an element is none.
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

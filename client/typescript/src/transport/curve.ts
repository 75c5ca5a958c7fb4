/** The curve that tokens are worked out on: loaded where a bundle names an issuer, and by that alone. */
export { ristretto255_oprf } from "@noble/curves/ed25519.js";

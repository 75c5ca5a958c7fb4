/** The curve of the token computations. Loaded only if a bundle names an issuer. */
export { ristretto255_oprf } from "@noble/curves/ed25519.js";

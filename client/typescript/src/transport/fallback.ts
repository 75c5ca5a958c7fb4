/** Curves and ML-KEM in JavaScript: for browsers without X25519, and metrics that are sealed by X-Wing. */
export { KEM_DHKEM_X25519_HKDF_SHA256, KEM_MLKEM768_X25519 } from "@panva/hpke-noble";

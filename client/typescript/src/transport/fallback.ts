/**
 * Curves and ML-KEM in JavaScript: for browsers without X25519, and metrics that are sealed by X-Wing.
 *
 * It begins with the page's entry, so that a page's first piece is not cut along what both share.
 */
export { open } from "../browser/open.js";
export { KEM_DHKEM_X25519_HKDF_SHA256, KEM_MLKEM768_X25519 } from "@panva/hpke-noble";

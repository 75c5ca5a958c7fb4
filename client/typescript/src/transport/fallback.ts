/**
 * X25519 and ML-KEM in JavaScript: for browsers without X25519, and for metrics that are sealed by
 * X-Wing.
 *
 * This file imports the page's entry first, so that the bundler does not split the page's first
 * file along the modules that both share.
 */
export { open } from "../browser/open.js";
export { KEM_DHKEM_X25519_HKDF_SHA256, KEM_MLKEM768_X25519 } from "@panva/hpke-noble";

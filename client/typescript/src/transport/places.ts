/** Addresses of servers that apps give. */

const PLACE = /^https:\/\/[^\s/?#@]+(?<!:0+)(\/[^\s?#]*)?$/;

/**
 * Whether a request can go to an https address with this host, and a path at most. Node would send
 * a user and a password in it to the server.
 */
export function isHttpsPlace(address: string): boolean {
  return PLACE.test(address) && URL.canParse(address);
}

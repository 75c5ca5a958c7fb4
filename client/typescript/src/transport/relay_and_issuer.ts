/**
 * The transport to a bundle's shuffler through a relay, and the function that requests tokens from
 * its issuer.
 */
import type { Bundle } from "../catalog/bundle.js";
import type { Post, Transport } from "../client/transport.js";
import { askingIssuer, type Account, type AskIssuer } from "./issuer.js";
import { relayTransport } from "./relay.js";

/** The options of an app that concern addresses. */
export interface Addresses {
  readonly shuffler?: string;
  readonly relay?: string;
  readonly account?: Account;
}

/**
 * The transport through a relay, if the app names one, and the function that requests tokens, if
 * the bundle has an issuer.
 *
 * @throws BadParameter an address is invalid, or the account or the gateway's key is missing.
 */
export function relayAndIssuer(
  bundle: Bundle,
  { relay, shuffler = bundle.shuffler, account }: Addresses,
  post: Post,
): { transport?: Transport; ask?: AskIssuer } {
  return {
    ...(relay !== undefined && {
      transport: relayTransport(relay, bundle.gateway, shuffler, post),
    }),
    ...(bundle.tokens && { ask: askingIssuer(bundle.tokens, account, post) }),
  };
}

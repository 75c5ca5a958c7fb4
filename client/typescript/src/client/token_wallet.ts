/**
 * The wallet: the tokens that a device requested and received, as its state stores them, in base64,
 * by stream and epoch.
 *
 * As client/hubbub/client/state/token_wallet.py. A token that was assigned to a report is stored with
 * that report.
 */

/**
 * A token: its nonce, the output of the issuer's pseudorandom function for it, and the beginning of
 * the issuer's public key, which identifies the key.
 */
export type Token = readonly [nonce: string, output: string, key: string];

/**
 * The tokens of one device.
 *
 * pending: requests without a stored answer; each entry has the nonce, the blinding factor and the
 * blinded element that the issuer receives. A request is repeated with the same entries, also if
 * the issuer has another key by then.
 *
 * free: tokens that no report uses yet. An empty list means that the issuer was asked and gives no
 * more for this stream and epoch.
 */
export interface Wallet {
  readonly pending: Readonly<Record<string, readonly (readonly [string, string, string])[]>>;
  readonly free: Readonly<Record<string, readonly Token[]>>;
}

/** The wallet of a device that has requested nothing. */
export const EMPTY_WALLET: Wallet = { pending: {}, free: {} };

/**
 * Encodes a submission and decodes its answer: SubmitRequest and SubmitResponse of services.proto,
 * over HTTP.
 */
import { GivenUp, TryAgain } from "../errors.js";
import { fromText } from "../catalog/encoding.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { bytesField, fieldsOf, numberField } from "./protobuf.js";

/** The path at which a shuffler accepts submissions. */
export const PATH = "/v1/reports";
/** The type of a submission and of its answer. */
export const TYPE = "application/protobuf";

/** One report as it is sent; it contains nothing that identifies the device. */
export interface SealedReport {
  readonly stream: string;
  readonly epoch: number;
  readonly keyId: number;
  readonly sealed: Uint8Array<ArrayBuffer>;
}

/** A report with its token. */
export interface TokenedReport extends SealedReport {
  readonly marked: Bytes;
}

/**
 * The result of one report: null if the shuffler acknowledged it, otherwise the reason of the
 * refusal, for counting.
 */
export type RefusalReason = string | null;

/** An answer over HTTP. headers: by name, in lower case. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
}

// The numbers of Reason in services.proto.
const REASONS = [
  "refused_unspecified",
  "refused_unknown_stream",
  "refused_wrong_length",
  "refused_wrong_key",
  "refused_expired",
  "refused_not_yet",
  "refused_unknown_field",
  "refused_no_token",
  "refused_token_spent",
];
// Reasons of newer shufflers are counted by their number, unless the number is implausible.
const MOST_REASONS = 1000;
// The Python SDK counts the same answers under these names.
const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, "invalid_argument"],
  [429, "resource_exhausted"],
  [503, "unavailable"],
]);
const LONGEST_HINT = 9;
const ENCODER = new TextEncoder();
const NOTHING: Bytes = new Uint8Array();

/** The bytes of a SubmitRequest, with the tokens of those reports that have one. */
export function requestOf(reports: readonly (SealedReport | TokenedReport)[]): Bytes {
  const fields = reports.map(({ stream, epoch, keyId, sealed }) => {
    return bytesField(
      1,
      bytesField(1, ENCODER.encode(stream)),
      numberField(2, epoch),
      numberField(3, keyId),
      bytesField(4, sealed),
    );
  });
  const tokens = reports.map((report) =>
    "marked" in report ? bytesField(2, report.marked) : NOTHING,
  );
  return concatenated(...fields, ...tokens);
}

/**
 * The results in the bytes of a SubmitResponse, one for each of the `reports` reports that were
 * sent.
 *
 * @throws Error the bytes are not a SubmitResponse.
 */
export function resultsOf(response: Uint8Array, reports: number): RefusalReason[] {
  const results: RefusalReason[] = Array.from({ length: reports }, () => null);
  for (const [field, refusal] of fieldsOf(response)) {
    if (field !== 1 || typeof refusal === "number") continue;
    const fields = new Map(fieldsOf(refusal));
    const index = Number(fields.get(1) ?? 0);
    if (index < reports) results[index] = nameOf(Number(fields.get(2) ?? 0));
  }
  return results;
}

/**
 * The results of an answer to a submission of `reports` reports.
 *
 * Only a shuffler marks an answer as final. A proxy or the login page of a hotel may answer with
 * any status, and reports that are given up because of it would be lost.
 *
 * @throws TryAgain the reports were not accepted; the same bytes may be accepted later.
 * @throws GivenUp the shuffler marked the refusal as final.
 */
export function meaningOf(answer: Answer, reports: number): RefusalReason[] {
  const { status, headers, body } = answer;
  if (status === 200) {
    if (typeOf(headers) !== TYPE) throw new TryAgain("no_shuffler");
    try {
      return resultsOf(body, reports);
    } catch {
      throw new TryAgain("no_shuffler");
    }
  }
  const reason = STATUSES.get(status) ?? `http_${status}`;
  if ((status === 400 || status === 413) && headers["hubbub-refused"] === "for-good") {
    throw new GivenUp(reason);
  }
  const hint = status === 429 || status === 503 ? hintOf(headers, body) : undefined;
  throw new TryAgain(reason, hint);
}

/** The signed notice in an answer; empty if there is none. */
export function noticeIn({ status, headers, body }: Answer): Bytes {
  try {
    if (status === 200 && typeOf(headers) === TYPE) {
      const notice = new Map(fieldsOf(body)).get(2);
      return typeof notice === "object" ? Uint8Array.from(notice) : NOTHING;
    }
    const refusalNotice = status === 429 || status === 503 ? problem(body)?.["notice"] : undefined;
    return typeof refusalNotice === "string" ? fromText(refusalNotice) : NOTHING;
  } catch {
    return NOTHING;
  }
}

/** The media type of a body, without its parameters. */
export function typeOf(headers: Answer["headers"]): string | undefined {
  return headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
}

function nameOf(reason: number): string {
  const permanent = REASONS[reason];
  if (permanent) return permanent;
  return reason > 0 && reason < MOST_REASONS ? `refused_unknown_${reason}` : "refused_unknown";
}

/**
 * The pause that the server asked for, in seconds: from a shuffler's field in milliseconds, or from
 * the Retry-After header of any server.
 */
function hintOf(headers: Answer["headers"], body: Uint8Array): number | undefined {
  const pause = milliseconds(body);
  if (pause !== undefined) return pause / 1000;
  const text = headers["retry-after"] ?? "";
  return /^[0-9]+$/.test(text) && text.length <= LONGEST_HINT ? Number(text) : undefined;
}

function milliseconds(body: Uint8Array): number | undefined {
  try {
    const pause = problem(body)?.["retry_after_ms"];
    const valid =
      Number.isInteger(pause) && Number(pause) >= 0 && Number(pause) < 10 ** LONGEST_HINT;
    return valid ? Number(pause) : undefined;
  } catch {
    return undefined;
  }
}

/** The members of a JSON problem. Throws an Error if the body is not JSON. */
function problem(body: Uint8Array): Readonly<Record<string, unknown>> | null {
  return JSON.parse(new TextDecoder().decode(body)) as Readonly<Record<string, unknown>> | null;
}

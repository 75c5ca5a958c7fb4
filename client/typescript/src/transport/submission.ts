/** A submission and its answer: SubmitRequest and SubmitResponse of services.proto, and HTTP's words. */
import { GivenUp, TryAgain } from "../errors.js";
import { fromText } from "../catalog/encoding.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { bytesField, fieldsOf, numberField } from "./protobuf.js";

/** Where a shuffler takes submissions, after its address. */
export const PATH = "/v1/reports";
/** The type of a submission and of its answer. */
export const TYPE = "application/protobuf";

/** One report as it leaves: nothing in it says whose it is. */
export interface SealedReport {
  readonly stream: string;
  readonly epoch: number;
  readonly keyId: number;
  readonly sealed: Uint8Array<ArrayBuffer>;
}

/** One with its token. */
export interface TokenedReport extends SealedReport {
  readonly marked: Bytes;
}

/** Of one report: null is acknowledged, else why it was refused, for counting. */
export type Result = string | null;

/** An answer over HTTP; the names of its headers are in small letters. */
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
// Reasons of shufflers to come are counted by their number, but for those that cannot be theirs.
const MOST_REASONS = 1000;
// The names under which the Python SDK counts the same.
const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, "invalid_argument"],
  [429, "resource_exhausted"],
  [503, "unavailable"],
]);
const LONGEST_HINT = 9;
const TEXT = new TextEncoder();
const NOTHING: Bytes = new Uint8Array();

/** The bytes of a SubmitRequest; with tokens, where reports have them. */
export function requestOf(reports: readonly (SealedReport | TokenedReport)[]): Bytes {
  const fields = reports.map(({ stream, epoch, keyId, sealed }) => {
    return bytesField(
      1,
      bytesField(1, TEXT.encode(stream)),
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
 * One result for each of so many reports, from the bytes of a SubmitResponse.
 *
 * @throws Error the bytes are none.
 */
export function resultsOf(response: Uint8Array, reports: number): Result[] {
  const results: Result[] = Array.from({ length: reports }, () => null);
  for (const [field, refusal] of fieldsOf(response)) {
    if (field !== 1 || typeof refusal === "number") continue;
    const fields = new Map(fieldsOf(refusal));
    const index = Number(fields.get(1) ?? 0);
    if (index < reports) results[index] = nameOf(Number(fields.get(2) ?? 0));
  }
  return results;
}

/**
 * What an answer means for so many reports.
 *
 * That the same bytes can never be taken is believed of a shuffler alone, which marks it so: a proxy
 * or a hotel's login page answers with any status, and a report given up then is lost.
 *
 * @throws TryAgain the reports were not taken; send the same bytes later.
 * @throws GivenUp the shuffler says that it can never take them.
 */
export function meaningOf(answer: Answer, reports: number): Result[] {
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

/** The operator's notice that an answer carries, as it was signed; empty for none. */
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

/** The type of a body, without its parameters. */
export function typeOf(headers: Answer["headers"]): string | undefined {
  return headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
}

function nameOf(reason: number): string {
  const permanent = REASONS[reason];
  if (permanent) return permanent;
  return reason > 0 && reason < MOST_REASONS ? `refused_unknown_${reason}` : "refused_unknown";
}

/** When to come back, in seconds: to the millisecond, as a shuffler says it, else as any server does. */
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

/** The members of a problem, of a shuffler or of whoever else answers. Throws an Error for no JSON. */
function problem(body: Uint8Array): Readonly<Record<string, unknown>> | null {
  return JSON.parse(new TextDecoder().decode(body)) as Readonly<Record<string, unknown>> | null;
}

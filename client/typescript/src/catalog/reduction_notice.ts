/**
 * Reads an operator's signed notice: two lines of JSON, the signature and the content.
 *
 * A notice lowers the share of devices that take part in a metric, down to 0. It can express
 * nothing else. As client/hubbub/bundles/reduction_notice.py.
 */
import { HubbubError, NotLoaded } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";
import { linesOf } from "./encoding.js";
import { signedLines } from "./signed_lines.js";
import { listed, number, table } from "./json.js";
import type { Notice, Step } from "./sampling.js";

const LARGEST_BYTES = 16 << 10;
const MOST_STEPS = 16;
const MIN_CHANCE = 1e-6; // the same as of `sampling` in a catalog
const NAME_PATTERN = /^[a-z][a-z0-9_.-]{0,63}$/;
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...["version", "number", "until", "sampling", "handovers"],
]);

/** An operator's notice is unreadable, altered, or another operator's; it has no effect. */
export class NoticeRefused extends HubbubError {
  override readonly name = "NoticeRefused";
}

/**
 * The notice in the bytes. operator: the key in base64 that signed the app's bundle; it, or a key
 * that it handed over to, must have signed the notice.
 *
 * @throws NoticeRefused the notice is malformed, altered, another operator's, or of a later
 * version.
 */
export async function openNotice(noticeBytes: Bytes, operator: string): Promise<Notice> {
  try {
    return await parseNotice(noticeBytes, operator);
  } catch (error) {
    if (error instanceof NotLoaded) throw error;
    throw new NoticeRefused("it is damaged, altered, or signed by another operator", {
      cause: error,
    });
  }
}

/**
 * Whether a notice replaces another: it has a higher number, or a later key of the operator signed
 * it.
 */
export function follows(notice: Notice, previous: Notice): boolean {
  const [signer, previousSigner] = [notice.line.at(-1) ?? "", previous.line.at(-1) ?? ""];
  return signer === previousSigner
    ? notice.number > previous.number
    : notice.line.includes(previousSigner);
}

async function parseNotice(noticeBytes: Bytes, operator: string): Promise<Notice> {
  const [head, body, ...extraLines] = linesOf(noticeBytes);
  if (noticeBytes.length > LARGEST_BYTES || !head || !body || extraLines.length) {
    throw new NoticeRefused("it does not have two lines");
  }
  const { body: notice, line } = await signedLines("hubbub/1 notice\n", head, body);
  const unknownField = Object.keys(notice).find((name) => !KNOWN_FIELDS.has(name));
  if (notice["version"] !== 1 || unknownField !== undefined)
    throw new NoticeRefused("it needs a newer hubbub");
  if (!line.includes(operator)) throw new NoticeRefused("another operator signed it");
  const steps = Object.entries(table(notice["sampling"])).map(([name, steps]) => {
    if (!NAME_PATTERN.test(name)) throw new NoticeRefused("it contains an invalid metric name");
    return [name, stepsOf(steps)] as const;
  });
  const [noticeNumber, until] = [moment(notice["number"]), moment(notice["until"])];
  if (!noticeNumber) throw new NoticeRefused("it has no valid number");
  return { number: noticeNumber, until, line, steps: Object.fromEntries(steps) };
}

function stepsOf(value: unknown): Step[] {
  const steps = listed(value).map((step): Step => {
    const [since, chance, ...extraFields] = listed(step);
    const share = number(chance);
    if (extraFields.length || !(share === 0 || (share >= MIN_CHANCE && share <= 1))) {
      throw new NoticeRefused("a sampling chance is invalid");
    }
    return [moment(since), share];
  });
  const ascend = steps.every(([since], index) => since > (steps[index - 1]?.[0] ?? -1));
  if (!steps.length || steps.length > MOST_STEPS || !ascend) {
    throw new NoticeRefused("its steps do not ascend, or are too many");
  }
  return steps;
}

function moment(value: unknown): number {
  const seconds = number(value);
  if (!Number.isSafeInteger(seconds) || seconds < 0) throw new NoticeRefused("a time is invalid");
  return seconds;
}

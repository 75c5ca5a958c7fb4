/**
 * An operator's signed notice, read: two lines of JSON, who signed, and what.
 *
 * It lowers how many devices take part in a metric, down to none, and has no word for anything else. As
 * client/hubbub/bundles/notice.py.
 */
import { HubbubError, NotLoaded } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";
import { linesOf } from "./encoding.js";
import { signedLines } from "./signed_lines.js";
import { listed, number, table } from "./json.js";
import type { Notice, Step } from "./sampling.js";

const LARGEST_BYTES = 16 << 10;
const MOST_STEPS = 16;
const LEAST = 1e-6; // as of `sampling` in a catalog
const NAME = /^[a-z][a-z0-9_.-]{0,63}$/;
const KNOWN: ReadonlySet<string> = new Set([
  ...["version", "number", "until", "sampling", "handovers"],
]);

/** An operator's notice is unreadable, altered, or another operator's: nothing of it holds. */
export class NoticeRefused extends HubbubError {
  override readonly name = "NoticeRefused";
}

/**
 * The notice in some bytes. operator: who signed the app's bundle, in base64: it signed the notice too,
 * or it handed over to who did.
 *
 * @throws NoticeRefused malformed, altered, another operator's, or it says what is not known here.
 */
export async function openNotice(noticeBytes: Bytes, operator: string): Promise<Notice> {
  try {
    return await parseNotice(noticeBytes, operator);
  } catch (error) {
    if (error instanceof NotLoaded) throw error;
    throw new NoticeRefused("it is none, was altered, or is another operator's", { cause: error });
  }
}

/** Whether a notice takes the place of another: a higher number, or of the key that came after. */
export function follows(notice: Notice, previous: Notice): boolean {
  const [signer, previousSigner] = [notice.line.at(-1) ?? "", previous.line.at(-1) ?? ""];
  return signer === previousSigner
    ? notice.number > previous.number
    : notice.line.includes(previousSigner);
}

async function parseNotice(noticeBytes: Bytes, operator: string): Promise<Notice> {
  const [head, body, ...extraLines] = linesOf(noticeBytes);
  if (noticeBytes.length > LARGEST_BYTES || !head || !body || extraLines.length) {
    throw new NoticeRefused("not two lines");
  }
  const { body: notice, line } = await signedLines("hubbub/1 notice\n", head, body);
  const unknown = Object.keys(notice).find((name) => !KNOWN.has(name));
  if (notice["version"] !== 1 || unknown !== undefined)
    throw new NoticeRefused("of a later version");
  if (!line.includes(operator)) throw new NoticeRefused("another operator's");
  const steps = Object.entries(table(notice["sampling"])).map(([name, steps]) => {
    if (!NAME.test(name)) throw new NoticeRefused("it names what is no metric");
    return [name, stepsOf(steps)] as const;
  });
  const [first, until] = [moment(notice["number"]), moment(notice["until"])];
  if (!first) throw new NoticeRefused("it has no number");
  return { number: first, until, line, steps: Object.fromEntries(steps) };
}

function stepsOf(value: unknown): Step[] {
  const steps = listed(value).map((step): Step => {
    const [since, chance, ...extra] = listed(step);
    const share = number(chance);
    if (extra.length || !(share === 0 || (share >= LEAST && share <= 1))) {
      throw new NoticeRefused("a chance to take part is 0 or at most 1");
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
  if (!Number.isSafeInteger(seconds) || seconds < 0) throw new NoticeRefused("no moment");
  return seconds;
}

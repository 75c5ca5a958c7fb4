/** Hearing an operator's notice, which comes with answers. Loaded where one comes. */
import { signerOf } from "../catalog/bundle.js";
import { follows, NoticeRefused, openNotice } from "../catalog/notice.js";
import { StateUnusable } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Sender } from "./sender.js";

/** Keeps a notice, and stands by it; whether that is done with, be it that it is refused. */
export async function hear(
  { bundle, state, reporter, diagnostics }: Sender,
  signed: Bytes,
): Promise<boolean> {
  try {
    const notice = await openNotice(signed, signerOf(bundle));
    const device = await state.change((own) => {
      return own.notice && !follows(notice, own.notice) ? own : { ...own, notice };
    });
    await reporter.stand(device);
    return true;
  } catch (error) {
    const refused = error instanceof NoticeRefused;
    if (!refused && !(error instanceof StateUnusable)) throw error;
    diagnostics.warnOnce("notice", `a notice is refused: ${error.message}`);
    return refused;
  }
}

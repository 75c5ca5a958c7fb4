/** Hearing an operator's notice, which comes with answers. Loaded where one comes. */
import { signerOf } from "../catalog/bundle.js";
import { follows, NoticeRefused, openNotice } from "../catalog/notice.js";
import { StateUnusable } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Sender } from "./sender.js";

/** Keeps a notice, and stands by it; whether that is done with, be it that it is refused. */
export async function hear(
  { bundle, state, reporter, diagnostics }: Sender,
  noticeBytes: Bytes,
): Promise<boolean> {
  try {
    const notice = await openNotice(noticeBytes, signerOf(bundle));
    const device = await state.change((device) => {
      return device.notice && !follows(notice, device.notice) ? device : { ...device, notice };
    });
    await reporter.stand(device);
    return true;
  } catch (error) {
    const isRefused = error instanceof NoticeRefused;
    if (!isRefused && !(error instanceof StateUnusable)) throw error;
    diagnostics.warnOnce("notice", `a notice is refused: ${error.message}`);
    return isRefused;
  }
}

/** Receives an operator's notice, which comes with answers. Loaded when a notice arrives. */
import { signerOf } from "../catalog/bundle.js";
import { follows, NoticeRefused, openNotice } from "../catalog/reduction_notice.js";
import { StateUnusable } from "../errors.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Sender } from "./sender.js";

/**
 * Stores a notice and applies it. Resolves to true if the notice needs no further attempt, because
 * it was stored or refused.
 */
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

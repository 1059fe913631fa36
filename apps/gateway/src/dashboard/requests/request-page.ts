import type { ReplyHeader } from '@millrace/shared';
import { hasEnded } from '../../jobs/durable.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { JobStatus } from '../../jobs/job-status.js';
import { type Html, html } from '../html.js';
import type { JobView, PartView, RequestView } from './find-request.js';
import { frame, stateBadge, table, time } from './frame.js';
import { jobPath, requestPath } from './links.js';
import { legend, shortMs, timingBar, timingOf } from './timing.js';

export interface RequestPageOptions {
  /** Goes with the form that cancels; absent where the dashboard only shows. */
  formToken: string | undefined;
  /** Now, in epoch ms. */
  now: number;
  /** Why something that was asked for was not done. */
  message?: string;
}

export function requestPage(view: RequestView, { formToken, now, message }: RequestPageOptions): string {
  const { id, record, status, parts, moreParts } = view;
  const canCancel = record && status && !hasEnded(status) && formToken !== undefined;
  return frame(
    `Request ${id}`,
    html`<h1>Request <code>${id}</code> ${stateBadge(status?.state ?? stateOf(parts))}</h1>
${message !== undefined && html`<p role="alert">${message}</p>`}
${record && status ? recordFacts(record, status) : html`<p>It was not kept as a job of its own: this is what its queue still has of it.</p>`}
${status?.state === 'expired' && html`<p>Its time is over: its result is kept no longer.</p>`}
<h2>Parts</h2>
${partsTable(parts, now)}
${moreParts > 0 && html`<p>And ${moreParts} more.</p>`}
${canCancel && cancelForm(id, formToken)}
<p><a href="${requestPath(id)}">Look again</a></p>`,
    id,
  );
}

function cancelForm(id: string, formToken: string): Html {
  return html`<form method="post" action="${requestPath(id)}/cancel">
<input type="hidden" name="token" value="${formToken}">
<button class="danger">Cancel the request</button></form>`;
}

function recordFacts(record: JobRecord, { state, itemsDone, position, error }: JobStatus): Html {
  const { model, owner, writer, priority, itemCount, receivedAt, notBefore, deadlineAt, keepUntil } = record;
  return html`<dl>
${fact('Model', html`${model.name} <small>version</small> ${model.version}`)}
${fact('Owner', html`${owner}`)}
${fact('Door', html`${writer}`)}
${fact('Priority', html`${priority}`)}
${state === 'expired' ? fact('Items', html`${itemCount}`) : fact('Items answered', html`${itemsDone} of ${itemCount}`)}
${position !== undefined && fact('Jobs before it', html`${position}`)}
${fact('Received', time(receivedAt))}
${notBefore !== undefined && fact('Not before', time(notBefore))}
${fact('Deadline', time(deadlineAt))}
${fact(state === 'expired' ? 'Was kept until' : 'Kept until', time(keepUntil))}
${record.cancelledAt !== undefined && fact('Cancelled', time(record.cancelledAt))}
${record.callback !== undefined && fact('Callback', html`${record.callback}`, 'wide')}
${error && fact('Error', html`<code>${error.code}</code> ${error.message}`, 'wide')}
</dl>`;
}

function fact(name: string, value: Html, width = ''): Html {
  return html`<div class="${width}"><dt>${name}</dt><dd>${value}</dd></div>`;
}

function partsTable(parts: readonly PartView[], now: number): Html {
  const timings = parts.map(timingOf);
  const longestMs = Math.max(...timings.map((timing) => timing?.totalMs ?? 0));
  const rows = parts.map((part, i) => {
    const { firstItem, count, queue, jobId, reply, job } = part;
    const timing = timings[i];
    return html`<tr>
<td class="number">${firstItem}</td>
<td class="number">${count}</td>
<td>${job ? html`<a href="${jobPath(queue, jobId)}" aria-label="Job ${jobId}">${shortId(jobId)}</a>` : shortId(jobId)}</td>
<td>${stateBadge(partState(part))}</td>
<td class="text">${timing ? timingBar(timing, longestMs) : waited(part, now)}</td>
<td class="number">${timing && shortMs(timing.totalMs)}</td>
<td class="text">${outcome(part)}</td>
<td class="number">${reply?.generation ?? part.data?.generation}</td>
<td class="number">${job?.attemptsStarted ?? reply?.attempt}</td>
<td>${reply && html`<code title="${reply.worker}">${reply.worker.slice(0, 8)}</code>`}</td>
</tr>`;
  });
  const head = html`<th class="number">First item</th><th class="number">Count</th><th>Job</th><th>State</th>
<th>Time</th><th class="number">Total ms</th><th>Outcome</th><th class="number">Generation</th><th class="number">Attempts</th><th>Worker</th>`;
  return html`${legend(timings)}${table('Parts of the request', head, rows)}`;
}

/** The end tells the parts of one request apart. */
function shortId(jobId: string): Html {
  return html`<code title="${jobId}">…${jobId.slice(-10)}</code>`;
}

function partState({ state, reply }: PartView): string {
  if (state !== undefined && state !== 'unknown') return state;
  return reply ? 'answered' : 'gone';
}

/** How a request without a record stands, by the jobs of its parts. */
function stateOf(parts: readonly PartView[]): string {
  const states = new Set(parts.map(partState));
  for (const state of ['active', 'failed', 'prioritized', 'waiting', 'delayed']) {
    if (states.has(state)) return state;
  }
  return states.has('gone') ? 'gone' : 'completed';
}

function waited({ data, state }: PartView, now: number): Html {
  const since = data?.stamps.enqueued;
  if (since === undefined || since > now || state === 'completed' || state === 'failed') return html``;
  return html`<small>enqueued ${shortMs(now - since)} ms ago</small>`;
}

/** Counts of its items by how they ended, and the first error. */
function outcome({ reply, job, state }: PartView): Html {
  if (!reply) {
    const hasEnded = state === 'completed' || state === 'failed';
    return html`${job?.failedReason} ${hasEnded && html`<small>The reply was received and is gone.</small>`}`;
  }
  const counts = new Map<string, number>();
  for (const { status } of reply.items) counts.set(status, (counts.get(status) ?? 0) + 1);
  const text = [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
  return html`${text}${firstError(reply)}`;
}

function firstError({ items }: ReplyHeader): Html {
  const index = items.findIndex(({ status }) => status === 'failed');
  const item = items[index];
  return item?.status === 'failed' ? html`<br><code>${item.code}</code> ${item.message}` : html``;
}

/** A job that carries parts of several requests. */
export function jobPage({ queue, jobId, state, parts }: JobView): string {
  const rows = parts.map(
    ({ requestId, firstItem, count, tenant, stamps }) => html`<tr>
<td><a href="${requestPath(requestId)}"><code>${requestId}</code></a></td>
<td class="number">${firstItem}</td><td class="number">${count}</td><td>${tenant}</td><td>${time(stamps.received)}</td></tr>`,
  );
  const head = html`<th>Request</th><th class="number">First item</th><th class="number">Count</th><th>Owner</th><th>Received</th>`;
  return frame(
    `Job ${jobId}`,
    html`<h1>Job <code>${jobId}</code> ${stateBadge(state)}</h1>
<p>It carries parts of ${parts.length} requests. <a href="${jobPath(queue, jobId)}">See the job in its queue</a></p>
${table('Requests of the job', head, rows)}`,
    jobId,
  );
}

export function notFoundPage(sought: string, reason: string): string {
  return frame(
    'Nothing found',
    html`<h1>Nothing found</h1>
<p>${reason}</p>`,
    sought,
  );
}

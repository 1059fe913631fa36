import { JOB_STATES, type JobState } from '../../jobs/job-status.js';
import { type Html, html } from '../html.js';
import { DASHBOARD_PATH, page } from '../pages.js';
import { REQUESTS_PATH } from './links.js';

const STYLE = `
  header { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: center; padding: .75rem 1rem;
    background: var(--card); border-bottom: 1px solid var(--line); }
  header strong { margin-right: auto; }
  main { padding: 1rem; max-width: 90rem; margin: 0 auto; }
  form { display: flex; flex-wrap: wrap; gap: .5rem; align-items: end; margin: 1rem 0; }
  form:first-child { margin-top: 0; }
  label { font-size: .875rem; color: var(--quiet); flex: 1 1 20rem; max-width: 34rem; }
  label input { display: block; width: 100%; margin-top: .15rem; color: var(--text);
    font-family: ui-monospace, monospace; font-size: .875rem; }
  h1 { margin: 1.25rem 0 .75rem; overflow-wrap: anywhere; }
  h2 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
  nav ul, .legend { display: flex; flex-wrap: wrap; gap: .25rem .75rem; list-style: none; margin: 0 0 .75rem; padding: 0; }
  nav [aria-current] { font-weight: 600; color: var(--text); text-decoration: none; }
  dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .75rem 1.5rem; margin: 0;
    background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; }
  dt { font-size: .8125rem; color: var(--quiet); }
  dd { margin: 0; overflow-wrap: anywhere; }
  .wide { grid-column: 1 / -1; }
  .scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
  table { border-collapse: collapse; width: 100%; font-size: .875rem; }
  th, td { text-align: left; vertical-align: top; padding: .5rem .75rem; border-bottom: 1px solid var(--line);
    white-space: nowrap; }
  tr:last-child td { border-bottom: 0; }
  th { color: var(--quiet); font-weight: 500; }
  td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
  td.text { white-space: normal; min-width: 14rem; line-height: 1.4; }
  label input, form button { height: 2.75rem; }
  code { font-family: ui-monospace, monospace; font-size: .8125rem; }
  small { color: var(--quiet); }
  .state { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .8125rem; line-height: 1.35rem;
    border: 1px solid currentColor; white-space: nowrap; }
  .done, .completed, .answered { color: #14713c; } .failed { color: var(--danger); }
  .active, .running { color: var(--accent); } .queued, .scheduled, .cancelled, .waiting, .prioritized, .delayed, .gone, .expired { color: var(--quiet); }
  .bar { display: block; width: 100%; min-width: 14rem; height: .75rem; border-radius: .2rem; background: var(--page); }
  .swatch { width: .75rem; height: .75rem; margin-right: .35rem; vertical-align: -.05rem; }
  .queue { fill: #d29922; } .preprocess { fill: #8957e5; } .window { fill: #db61a2; }
  .infer, .worker { fill: #1f6feb; } .postprocess { fill: #1b9e9e; } .reply { fill: #2da44e; }
  .danger { background: var(--card); border-color: var(--danger); color: var(--danger); }
  @media (prefers-color-scheme: dark) { .done, .completed, .answered { color: #56d384; } }`;

/** A page of requests: with the way to the others, and the search. @param sought what stands in the search. */
export function frame(title: string, body: Html, sought = ''): string {
  return page(
    `${title} - Millrace`,
    STYLE,
    html`<header><strong>Millrace</strong>
<a href="${REQUESTS_PATH}">Requests</a> <a href="${DASHBOARD_PATH}">Queues</a> <a href="${DASHBOARD_PATH}/logout">Log out</a></header>
<main>
<form method="get" action="${REQUESTS_PATH}" role="search">
<label>Id of a request, or of a job
<input name="id" value="${sought}" autocomplete="off" spellcheck="false" required></label>
<button>Find</button>
</form>
${body}
</main>`,
  );
}

export function stateBadge(state: string): Html {
  return html`<span class="state ${state}">${state}</span>`;
}

/** @param at epoch ms. */
export function time(at: number): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 23)}</time> <small>UTC</small>`;
}

/** A table that scrolls by itself where it is wider than the screen, also by keyboard. */
export function table(name: string, head: Html, rows: readonly Html[]): Html {
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table>
<thead><tr>${head}</tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

export function stateLinks(current: JobState | undefined): Html {
  const link = (text: string, query: string, isCurrent: boolean): Html =>
    isCurrent
      ? html`<li><a href="${REQUESTS_PATH}${query}" aria-current="page">${text}</a></li>`
      : html`<li><a href="${REQUESTS_PATH}${query}">${text}</a></li>`;
  const links = JOB_STATES.map((state) => link(state, `?state=${state}`, state === current));
  return html`<nav aria-label="State"><ul>${link('all', '', current === undefined)}${links}</ul></nav>`;
}

import type { Gateway } from '../gateway.js';

/** Somebody who has logged in to a gateway's dashboard. */
export class DashboardClient {
  private constructor(
    private readonly url: string,
    private readonly cookie: string,
  ) {}

  static async login({ url }: Pick<Gateway, 'url'>, password: string): Promise<DashboardClient> {
    const response = await fetch(`${url}/dashboard/login`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ user: 'admin', password }),
    });
    const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
    return new DashboardClient(`${url}/dashboard`, cookie);
  }

  /** @param path below `/dashboard`. */
  ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { cookie: this.cookie, ...(init.headers as Record<string, string>) };
    return fetch(this.url + path, { redirect: 'manual', ...init, headers });
  }

  /** The page there. */
  async page(path: string): Promise<string> {
    return await (await this.ask(path)).text();
  }

  /** What bull-board does to a queue, or to a job of it. */
  act(queue: string, ...action: string[]): Promise<Response> {
    const path = [queue, ...action].map(encodeURIComponent).join('/');
    return this.ask(`/api/queues/${path}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
  }

  /** Sends the form with which a request's page cancels it; with a token of one's own, or that of the page. */
  async cancel(id: string, token?: string): Promise<Response> {
    const [, given = ''] = /name="token" value="([^"]+)"/.exec(await this.page(`/requests/${id}`)) ?? [];
    return await this.ask(`/requests/${id}/cancel`, {
      method: 'POST',
      body: new URLSearchParams({ token: token ?? given }),
    });
  }
}

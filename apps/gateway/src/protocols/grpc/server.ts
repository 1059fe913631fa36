import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server as GrpcServer, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { type Settings, StartupError } from '@millrace/shared';
import { limitConnections } from '../../http/connection-limit.js';
import type { ReadinessCheck } from '../../http/health.js';
import { refusal, TURN_AWAY_MS } from '../../http/server.js';
import type { WaitLimits } from '../new-request.js';
import { OpenStreams } from '../open-streams.js';
import { Arrivals } from './arrivals.js';
import { type CallParts, type Method, takeCalls } from './call.js';
import { healthService } from './health.js';
import type { InferParts } from './infer.js';
import { inferenceService } from './service.js';

/** Calls at a time that one connection may have. */
const MOST_CALLS = 1000;
/** A connection without calls is closed after this, in ms; clients open another when they need one. */
const IDLE_MS = 10 * 60_000;
/** How often a silent connection is asked whether it is still there, and how long it may take to say so, in ms. */
const KEEPALIVE_MS = 60_000;
const KEEPALIVE_ANSWER_MS = 20_000;
/** How often it is looked whether all connections are closed, in ms. */
const DRAIN_LOOK_MS = 10;
/** Triton's, which its clients try when told of no other. */
const USUAL_PORT = 8001;

export type GrpcSettings = WaitLimits &
  Pick<Settings, 'host' | 'port' | 'grpcPort' | 'maxConnections' | 'maxBodyBytes' | 'requestTimeoutMs'>;

export interface GrpcParts extends Omit<CallParts, 'arrivals' | 'settings'>, Omit<InferParts, 'settings'> {
  readiness: ReadinessCheck;
  settings: GrpcSettings;
}

/** The gRPC door, listening. */
export interface GrpcDoor {
  readonly port: number;
  /** Stops listening and tells clients to go elsewhere; resolves when the calls that came are answered. */
  drain(graceMs: number): Promise<void>;
  /** Cuts off whoever is left. */
  close(): void;
}

/**
 * Opens the gRPC door, unless the settings say that there is none.
 * @throws StartupError when the port is taken or can't be listened on.
 */
export async function openGrpc(parts: GrpcParts): Promise<GrpcDoor | undefined> {
  const { settings, metrics, readiness } = parts;
  if (settings.grpcPort === 'off') return undefined;
  const arrivals = new Arrivals(settings.requestTimeoutMs);
  const streams = new OpenStreams();
  const methods = new Map<string, Method>([
    ...inferenceService(parts, readiness, streams),
    ...healthService(readiness, streams),
  ]);
  const grpc = new GrpcServer({
    'grpc.max_receive_message_length': settings.maxBodyBytes,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': MOST_CALLS,
    'grpc.max_connection_idle_ms': IDLE_MS,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_ANSWER_MS,
    // Diagnostics that nobody reads here, at a price for every call.
    'grpc.enable_channelz': 0,
    interceptors: [takeCalls(methods, { ...parts, arrivals })],
  });
  grpc.addService(definitionOf(methods), {});
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  try {
    await listenAny(server, settings);
  } catch (error) {
    arrivals.stop();
    throw error;
  }
  // A client of gRPC reads no answer before its call: it sees that the connection is closed, and tries again later.
  limitConnections(server, settings.maxConnections, metrics, (socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    async drain(graceMs) {
      await sleep(Math.min(TURN_AWAY_MS, graceMs));
      server.close();
      streams.drain();
      injector.drain(graceMs);
      // A connection is closed by itself once its last answer is out. Calls that are given up get to be told so.
      const deadline = performance.now() + graceMs + TURN_AWAY_MS;
      while (sockets.size > 0 && performance.now() < deadline) await sleep(DRAIN_LOOK_MS);
    },
    close() {
      arrivals.stop();
      server.close();
      injector.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Messages stay as they come: methods decode and encode by themselves, so that a fault is answered as ours. */
function definitionOf(methods: ReadonlyMap<string, Method>): ServiceDefinition {
  const asIs = (message: Buffer): Buffer => message;
  const entries = [...methods].map(([path, { streams = false }]) => [
    path,
    {
      path,
      requestStream: streams,
      responseStream: streams,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  ]);
  return Object.fromEntries(entries) as ServiceDefinition;
}

/** Listens where the settings say; `auto` is the usual port where that is free, else any. */
async function listenAny(server: Server, { host, port, grpcPort }: GrpcSettings): Promise<void> {
  if (grpcPort !== 'auto') return await listen(server, host, grpcPort as number);
  // Who asks for any HTTP port runs several gateways on one machine.
  if (port !== 0) {
    try {
      return await listen(server, host, USUAL_PORT);
    } catch (error) {
      if (!(error instanceof StartupError)) throw error;
    }
  }
  await listen(server, host, 0);
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch (error) {
    throw refusal(error as NodeJS.ErrnoException, host, port, 'grpc-port');
  }
}

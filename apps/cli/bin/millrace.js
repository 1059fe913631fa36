#!/usr/bin/env node
// Apart from the compiled program, so that `npm ci` can link it before there is one.
import '../dist/main.js';

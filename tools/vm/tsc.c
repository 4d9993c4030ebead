// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the rate of the time-stamp counter in kHz.
 *
 * A guest on an emulated CPU reads the host's counter, and has to know its
 * rate. It cannot measure it where the host is busy: it is stopped between
 * the two readings that belong together. So the host measures, takes of many
 * pairs of readings the one that lies closest together, and tells the guest.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES 200
#define ROUNDS 5

struct sample {
	uint64_t ns;
	uint64_t ticks;
};

static struct sample take(void)
{
	struct sample best = { 0, 0 };
	uint64_t width = UINT64_MAX;
	int i;

	for (i = 0; i < TRIES; i++) {
		struct timespec t;
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC, &t);
		after = __rdtsc();
		if (after - before < width) {
			width = after - before;
			best.ns = (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
			best.ticks = before + width / 2;
		}
	}
	return best;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	const struct timespec interval = { .tv_nsec = 50000000 };
	double khz[ROUNDS];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct sample first = take(), last;

		nanosleep(&interval, NULL);
		last = take();
		khz[i] = (last.ticks - first.ticks) * 1e6 / (last.ns - first.ns);
	}
	qsort(khz, ROUNDS, sizeof(khz[0]), compare);
	printf("%.0f\n", khz[ROUNDS / 2]);
	return 0;
}

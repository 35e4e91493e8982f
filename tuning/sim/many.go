package sim

import (
	"context"
	"runtime"
	"sync"
)

// RunMany runs jobs side by side, on workers goroutines (0 = one for each core), and returns their results in the order of the
// jobs. It stops at the first error, which it returns; results of jobs that were not run are nil then. each, when not nil,
// is called as jobs end, one call at a time, with the index of the job.
func RunMany(ctx context.Context, jobs []Job, workers int, each func(i int, r *Result)) ([]*Result, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]*Result, len(jobs))
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	next := make(chan int)
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			for i := range next {
				j := &jobs[i]
				r, err := Run(ctx, j.Net, j.Workload, j.Options, j.Seed)
				mu.Lock()
				switch {
				case err == nil:
					results[i] = r
					if each != nil {
						each(i, r)
					}
				case first == nil:
					first = err
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	for i := range jobs {
		if ctx.Err() != nil { // select takes either, when it can
			break
		}
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	if first == nil {
		first = context.Cause(ctx)
	}
	return results, first
}

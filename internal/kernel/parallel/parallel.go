// Package parallel calls a function for the numbers of a range from several goroutines.
package parallel

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// For calls f for 0 <= i < n, from at most workers goroutines, numbers in rising order.
// worker is below workers, and no two calls at the same time have the same. The first
// error ends it, and so does ctx.
func For(ctx context.Context, workers, n int, f func(i, worker int) error) error {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(i, 0); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := f(i, w); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "12B": 12, "3k": 3000, "40M": 40_000_000, "5GB": 5_000_000_000, "9223372036G": 9223372036_000_000_000,
		"0": 0, "": 0, "G": 0, "-1": 0, "1.5G": 0, "5T": 0, "5KK": 0, "9223372037G": 0, "18446744073709551615": 0, " 1": 0,
	} {
		var n int64
		var err error
		cmd := &cli.Command{
			Flags:  []cli.Flag{&cli.StringFlag{Name: "size", Value: text}},
			Action: func(_ context.Context, cmd *cli.Command) error { n, err = Size(cmd, "size"); return nil },
		}
		if err := cmd.Run(context.Background(), []string{"x"}); err != nil {
			t.Fatal(err)
		}
		if n != want || (err != nil) != (want == 0) || err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %d %v, want %d", text, n, err, want)
		}
	}
}

package reproduce

import (
	"testing"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
)

// TestEffects holds every flag of the commands that write manifests to declare what it does to a run.
func TestEffects(t *testing.T) {
	for command, flags := range map[string][]cli.Flag{"ggconv": runs.ConvertFlags(), "ggquant": runs.QuantizeFlags()} {
		for _, f := range flags {
			effect, names := tool.EffectOf(f), tool.NamesFile(f)
			reads := effect == tool.ReadsFile || effect == tool.KeepsFile
			switch name := f.Names()[0]; {
			case effect == tool.Undeclared:
				t.Errorf("%s --%s: declares no effect (cmd/internal/cli/effect.go)", command, name)
			case names && !reads && effect != tool.WritesFile:
				t.Errorf("%s --%s: names a file, and does not say that it reads or writes one", command, name)
			case !names && reads:
				t.Errorf("%s --%s: reads a file, and its text has no FILE or DIR", command, name)
			}
		}
	}
}

package main

import (
	"testing"

	"github.com/urfave/cli/v3"

	"ggforge/internal/flagtest"
)

func TestEveryFlag(t *testing.T) {
	alone := flagtest.Row{Field: "Alone", Want: "true", Args: []string{"--alone"}}
	checked := map[string]bool{}
	t.Run("inspect", func(t *testing.T) {
		checked["inspect"] = true
		flagtest.Check(t, inspectCommand, parseInspect, []string{"FILE"}, map[string]flagtest.Row{
			"json":  {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"full":  {Field: "Dump.Full", Want: "true", Args: []string{"--full"}},
			"alone": alone,
		})
	})
	t.Run("diff", func(t *testing.T) {
		checked["diff"] = true
		flagtest.Check(t, diffCommand, parseDiff, []string{"A", "B"}, map[string]flagtest.Row{"alone": alone})
	})
	t.Run("export", func(t *testing.T) {
		checked["export"] = true
		flagtest.Check(t, exportCommand, parseExport, []string{"FILE", "DIR"}, map[string]flagtest.Row{
			"type":           {Field: "Export.Type", Want: "F16", Args: []string{"--type", "f16"}},
			"hf":             {Field: "Export.HF", Want: "true", Args: []string{"--hf"}},
			"max-shard-size": {Field: "Export.MaxShard", Want: "7000", Args: []string{"--max-shard-size", "7k"}},
			"threads":        {Field: "Write.Workers", Want: "3", Args: []string{"--threads", "3"}},
			"force":          {Field: "Write.Force", Want: "true", Args: []string{"--force"}},
			"progress":       {Field: "Write.Progress", Want: "nil", Args: []string{"--progress", "none"}},
		})
	})
	var verbs []*cli.Command = command().Commands
	for _, verb := range verbs {
		if !checked[verb.Name] {
			t.Errorf("the flags of %s are not checked", verb.Name)
		}
	}
	if n := len(command().Flags); n > 0 {
		t.Errorf("%d flags before the verb are not checked", n)
	}
}

func TestDocumented(t *testing.T) { flagtest.Documented(t, command().Commands...) }

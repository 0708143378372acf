package main

import (
	"maps"
	"testing"

	"ggforge/cmd/internal/flagtest"
	"ggforge/cmd/internal/runs"
)

func TestEveryFlag(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	rows := map[string]flagtest.Row{
		"output":      {Field: "Out", Args: []string{"--output", "x.gguf"}, Want: "x.gguf"},
		"outtype":     {Field: "Convert.Type", Args: []string{"--outtype", "q8_0"}, Want: "q8_0"},
		"vocab-only":  {Field: "Convert.VocabOnly", Args: []string{"--vocab-only"}, Want: "true"},
		"bigendian":   {Field: "Convert.BigEndian", Args: []string{"--bigendian"}, Want: "true"},
		"max-tensors": {Field: "Convert.Split.MaxTensors", Args: []string{"--max-tensors", "7"}, Want: "7"},
		"max-size": {Field: "Convert.Split.MaxBytes", Args: []string{"--max-size", "2M"},
			Want: "2000000"},
		"no-tensor-first-split": {Field: "Convert.Split.EmptyFirst", Args: []string{"--no-tensor-first-split"},
			Want: "true"},
		"dry-run": {Field: "DryRun", Args: []string{"--dry-run"}, Want: "true"},
		"config-only": {Field: "Convert.ConfigOnly", Args: []string{"--config-only", "--dry-run"},
			Want: "true"},
		"verbose":                {Field: "Verbose", Args: []string{"--verbose"}, Want: "true"},
		"print-supported-models": {Field: "PrintModels", Args: []string{"--print-supported-models"}, Want: "true"},
		"base":                   {Field: "Convert.Base", Args: []string{"--base", "d"}, Want: "d"},
		"base-model-id":          {Field: "Convert.BaseID", Args: []string{"--base-model-id", "o/n"}, Want: "o/n"},
		"desc":                   {Field: "Old.Description", Args: []string{"--desc", "x"}, Want: "x"},
		"ctx-size":               {Field: "Old.Context", Args: []string{"--ctx-size", "4096"}, Want: "4096"},
		"eps":                    {Field: "Old.Epsilon", Args: []string{"--eps", "1e-5"}, Want: "1e-05"},
		"gqa":                    {Field: "Old.Grouped", Args: []string{"--gqa", "8"}, Want: "8"},
		"compat":                 {Field: "Convert.Reference", Args: []string{"--compat", "reference"}, Want: "true"},
		"threads":                {Field: "Write.Workers", Args: []string{"--threads", "3"}, Want: "3"},
		"force":                  {Field: "Write.Force", Args: []string{"--force"}, Want: "true"},
		"work-dir": {Field: "Out", Args: []string{"--work-dir", "w", "--outfile", "s3://bkt/x.gguf"},
			Want: "w/ggforge-upload-c9bda0c6b57d6593/x.gguf"},
		"remote":   {Field: "Dir", Args: []string{"--remote"}, Want: "hf://DIR"},
		"json":     {Field: "JSON", Args: []string{"--json"}, Want: "true"},
		"progress": {Field: "Write.Progress", Args: []string{"--progress", "none"}, Want: "nil"},
	}
	maps.Copy(rows, flagtest.Checkpoint)
	maps.Copy(rows, flagtest.Runs)
	flagtest.Check(t, command, runs.ParseConvert, []string{"DIR"}, rows)
}

func TestDocumented(t *testing.T) { flagtest.Documented(t, command()) }

func TestTree(t *testing.T) { flagtest.Tree(t, command) }

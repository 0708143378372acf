package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/flagtest"
)

func TestEveryFlag(t *testing.T) {
	alone := flagtest.Row{Field: "Alone", Want: "true", Args: []string{"--alone"}}
	checked := map[string]bool{}
	t.Run("inspect", func(t *testing.T) {
		checked["inspect"] = true
		flagtest.Check(t, inspectCommand, parseInspect, []string{"FILE"}, map[string]flagtest.Row{
			"json":     {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"full":     {Field: "Dump.Full", Want: "true", Args: []string{"--full"}},
			"markdown": {Field: "Markdown", Want: "true", Args: []string{"--markdown"}},
			"get":      {Field: "Get", Want: "k", Args: []string{"--get", "k"}},
			"tensors":  {Field: "Tensors", Want: "a|b", Args: []string{"--tensors", "a|b"}},
			"alone":    alone,

			"html":    {Field: "HTML", Want: "f", Args: []string{"--html", "f"}},
			"results": {Field: "Results", Want: "f", Args: []string{"--results", "f", "--html", "p"}},
			"force":   {Field: "Force", Want: "true", Args: []string{"--force"}},
			"memory":  {Field: "Memory", Want: "true", Args: []string{"--memory"}},
			"ctx-size": {Field: "Contexts", Want: "[4096 1000]",
				Args: []string{"--ctx-size", "4k,1000", "--memory"}},
			"cache-type": {Field: "Run",
				Want: "{Context:0 Keys:q8_0 Values:f16 Sequences:1 Unified:false Batch:512 FullWindows:false}",
				Args: []string{"--cache-type", "q8_0,f16", "--memory"}},
			"parallel": {Field: "Run",
				Want: "{Context:0 Keys:f16 Values:f16 Sequences:4 Unified:true Batch:512 FullWindows:false}",
				Args: []string{"--parallel", "4", "--memory"}},
			"ubatch-size": {Field: "Run.Batch", Want: "64", Args: []string{"--ubatch-size", "64", "--memory"}},
		})
	})
	t.Run("diff", func(t *testing.T) {
		checked["diff"] = true
		flagtest.Check(t, diffCommand, parseDiff, []string{"A", "B"},
			map[string]flagtest.Row{"alone": alone, "json": {Field: "JSON", Want: "true", Args: []string{"--json"}}})
	})
	// a row for the output by a flag instead of the last argument
	named := func(field string, flags ...string) flagtest.Row {
		return flagtest.Row{Field: field, Want: "o", Args: []string{"--output", "o"}, Base: append(flags, "FILE"),
			Needed: true}
	}
	writes := func(rows map[string]flagtest.Row) map[string]flagtest.Row {
		rows["json"] = flagtest.Row{Field: "JSON", Want: "true", Args: []string{"--json"}}
		rows["threads"] = flagtest.Row{Field: "Write.Workers", Want: "3", Args: []string{"--threads", "3"}}
		rows["force"] = flagtest.Row{Field: "Write.Force", Want: "true", Args: []string{"--force"}}
		rows["progress"] = flagtest.Row{Field: "Write.Progress", Want: "nil", Args: []string{"--progress", "none"}}
		return rows
	}
	t.Run("imatrix", func(t *testing.T) {
		checked["imatrix"] = true
		all := map[string]flagtest.Row{
			"ctx-size": {Field: "Chunk", Want: "7", Args: []string{"--ctx-size", "7"}},
			"output": {Field: "Out", Want: "o", Args: []string{"--output", "o"}, Base: []string{"FILE"},
				Needed: true},
			"format": {Field: "Format", Want: "dat", Args: []string{"--format", "dat"}},
			"force":  {Field: "Write.Force", Want: "true", Args: []string{"--force"}},
			"model":  {Field: "Model", Want: "m", Args: []string{"--model", "m"}},
			"how":    {Field: "Fill", Want: "uniform", Args: []string{"--how", "uniform"}},
			"json":   {Field: "JSON", Want: "true", Args: []string{"--json"}},
		}
		verbs := map[string]bool{}
		for _, verb := range imatrixCommand().Commands {
			verbs[verb.Name] = true
			parse, args := parseChanged, []string{"FILE", "OUT"}
			switch verb.Name {
			case "show", "check":
				parse, args = parseRead, []string{"FILE"}
			case "merge":
				parse = parseMerged
			}
			rows := map[string]flagtest.Row{}
			for _, f := range verb.Flags {
				rows[f.Names()[0]] = all[f.Names()[0]]
			}
			flagtest.Check(t, func() *cli.Command {
				for _, again := range imatrixCommand().Commands {
					if again.Name == verb.Name {
						var list []tool.Flag
						for _, f := range tool.Declarations(again) {
							f.Required = false
							list = append(list, *f)
						}
						again.Flags = tool.Flags(list...)
						return again
					}
				}
				return nil
			}, parse, args, rows)
		}
		if len(verbs) != 7 {
			t.Errorf("%v", verbs)
		}
	})
	t.Run("meta", func(t *testing.T) {
		checked["meta"] = true
		flagtest.Check(t, metaCommand, parseMeta, []string{"FILE"}, writes(map[string]flagtest.Row{
			"set":           {Field: "Set", Want: "[a=b c=d,e]", Args: []string{"--set", "a=b", "--set", "c=d,e"}},
			"remove":        {Field: "Remove", Want: "[a]", Args: []string{"--remove", "a"}},
			"rename":        {Field: "Rename", Want: "[a=b]", Args: []string{"--rename", "a=b"}},
			"copy-from":     {Field: "CopyFrom", Want: "f", Args: []string{"--copy-from", "f"}},
			"copy":          {Field: "Copy", Want: "[x]", Args: []string{"--copy", "x", "--copy-from", "f"}},
			"template":      {Field: "Template", Want: "f", Args: []string{"--template", "f"}},
			"special-token": {Field: "Special", Want: "[eos=x]", Args: []string{"--special-token", "eos=x"}},
			"reserve":       {Field: "Reserve", Want: "2000", Args: []string{"--reserve", "2k"}},
			"output":        {Field: "Out", Want: "o", Args: []string{"--output", "o"}},
			"dry-run":       {Field: "DryRun", Want: "true", Args: []string{"--dry-run"}},
			"alone":         alone,
		}))
	})
	t.Run("reproduce", func(t *testing.T) {
		checked["reproduce"] = true
		flagtest.Check(t, reproduceCommand, parseReproduce, []string{"M"}, map[string]flagtest.Row{
			"input":         {Field: "Again.Inputs", Want: "[a b]", Args: []string{"--input", "a", "--input", "b"}},
			"output":        {Field: "Again.Output", Want: "d", Args: []string{"--output", "d"}},
			"outside-links": {Field: "Again.OutsideLinks", Want: "true", Args: []string{"--outside-links"}},
			"schema":        {Field: "Schema", Want: "true", Args: []string{"--schema"}},
			"json":          {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"threads":       {Field: "Again.Workers", Want: "3", Args: []string{"--threads", "3"}},
			"progress": {Field: "Again.Flags", Want: fmt.Sprintf("[--progress none --threads %d]",
				runtime.GOMAXPROCS(0)), Args: []string{"--progress", "none"}},
		})
	})
	t.Run("release", func(t *testing.T) {
		checked["release"] = true
		t.Setenv("HF_TOKEN", "hf_test")
		flagtest.Check(t, releaseCommand, parseRelease, []string{"--source", "s", "--output", "d", "--type", "Q8_0"},
			map[string]flagtest.Row{
				"source": {Field: "Plan.Source", Want: "s2", Args: []string{"--source", "s2"}},
				"output": {Field: "Plan.Output", Want: "d2", Args: []string{"--output", "d2"}},
				"type": {Field: "Plan.Outputs",
					Want: "[{Type:Q8_0 Name: BPW:0 Size:0 Like: KLD:0 Types: line:1} {Type:Q4_0 Name:x BPW:0 " +
						"Size:4000000000 Like: KLD:0 Types:Q4_0,Q8_0 line:1}]",
					Args: []string{"--type", "Q4_0,size=4G,name=x,types=Q4_0+Q8_0"}},
				"layout":   {Field: "Plan.Layout", Want: "folders", Args: []string{"--layout", "folders"}},
				"max-size": {Field: "Plan.Split", Want: "2000000", Args: []string{"--max-size", "2M"}},
				"name-template": {Field: "Plan.Template", Want: "{ftype}",
					Args: []string{"--name-template", "{ftype}"}},
				"via":        {Field: "Plan.Via", Want: "f32", Args: []string{"--via", "f32"}},
				"model-name": {Field: "Plan.ModelName", Want: "x", Args: []string{"--model-name", "x"}},
				"calibrate":  {Field: "Plan.Calibration.Text", Want: "t", Args: []string{"--calibrate", "t"}},
				"imatrix":    {Field: "Plan.Calibration.Matrix", Want: "m", Args: []string{"--imatrix", "m"}},
				"effort": {Field: "Plan.Calibration.Effort", Want: "high",
					Args: []string{"--effort", "high", "--calibrate", "t"}},
				"ctx-size": {Field: "Plan.Calibration.Chunk", Want: "64",
					Args: []string{"--ctx-size", "64", "--calibrate", "t"}},
				"chunks": {Field: "Plan.Calibration.Chunks", Want: "3",
					Args: []string{"--chunks", "3", "--calibrate", "t"}},
				"process-output": {Field: "Plan.Calibration.ProcessOutput", Want: "true",
					Args: []string{"--process-output", "--calibrate", "t"}},
				"mmproj":   {Field: "Plan.Encoders", Want: "[f16]", Args: []string{"--mmproj", "f16"}},
				"evaluate": {Field: "Plan.Evaluation.Text", Want: "t", Args: []string{"--evaluate", "t"}},
				"evaluate-chunks": {Field: "Plan.Evaluation.Chunks", Want: "3",
					Args: []string{"--evaluate-chunks", "3", "--evaluate", "t"}},
				"base-model":   {Field: "Plan.Card.BaseModel", Want: "a/b", Args: []string{"--base-model", "a/b"}},
				"quantized-by": {Field: "Plan.Card.QuantizedBy", Want: "x", Args: []string{"--quantized-by", "x"}},
				"repository":   {Field: "Plan.Card.Repository", Want: "a/b", Args: []string{"--repository", "a/b"}},
				"template":     {Field: "Plan.Card.Template", Want: "f", Args: []string{"--template", "f"}},
				"pages":        {Field: "Plan.Pages", Want: "true", Args: []string{"--pages"}},
				"modelfile":    {Field: "Plan.Modelfile", Want: "true", Args: []string{"--modelfile"}},
				"provenance":   {Field: "Plan.Provenance", Want: "true", Args: []string{"--provenance"}},
				"key":          {Field: "Plan.Sign.Key", Want: "f", Args: []string{"--key", "f"}},
				"certificate": {Field: "Plan.Sign.Certificate", Want: "c",
					Args: []string{"--certificate", "c", "--key", "f"}},
				"no-card":    {Field: "Plan.Card.Off", Want: "true", Args: []string{"--no-card"}},
				"cache":      {Field: "Make.Remote.Cache", Want: "d", Args: []string{"--cache", "d"}},
				"dry-run":    {Field: "DryRun", Want: "true", Args: []string{"--dry-run"}},
				"schema":     {Field: "Schema", Want: "true", Args: []string{"--schema"}},
				"json":       {Field: "JSON", Want: "true", Args: []string{"--json"}},
				"force":      {Field: "Make.Force", Want: "true", Args: []string{"--force"}},
				"keep":       {Field: "Make.Keep", Want: "true", Args: []string{"--keep"}},
				"threads":    {Field: "Make.Workers", Want: "7", Args: []string{"--threads", "7"}},
				"progress":   {Field: "Make.Write", Want: "nil", Args: []string{"--progress", "none"}},
				"part":       {Field: "Make.Part", Want: "3", Args: []string{"--part", "3/16"}},
				"part-files": {Field: "Make.PartFiles", Want: "d", Args: []string{"--part-files", "d", "--finish"}},
				"finish":     {Field: "Make.Finish", Want: "true", Args: []string{"--finish"}},
				"push":       {Field: "To", Want: "s3://bucket/p", Args: []string{"--push", "s3://bucket/p"}},
				"private": {Field: "Push.Private", Want: "true",
					Args: []string{"--private", "--push", "hf://a/b"}},
				"pull-request": {Field: "Push.PullRequest", Want: "true",
					Args: []string{"--pull-request", "--push", "hf://a/b"}},
				"message": {Field: "Push.Message", Want: "m", Args: []string{"--message", "m", "--push", "hf://a/b"}},
			})
	})
	t.Run("sign", func(t *testing.T) {
		checked["sign"] = true
		flagtest.Check(t, func() *cli.Command {
			again := signCommand()
			var list []tool.Flag
			for _, f := range tool.Declarations(again) {
				f.Required = false
				list = append(list, *f)
			}
			again.Flags = tool.Flags(list...)
			return again
		}, parseSign, []string{"DIR"}, map[string]flagtest.Row{
			"key":         {Field: "Key", Want: "f", Args: []string{"--key", "f"}},
			"certificate": {Field: "Certificate", Want: "f", Args: []string{"--certificate", "f"}},
			"output":      {Field: "Out", Want: "f", Args: []string{"--output", "f"}},
			"force":       {Field: "Write.Force", Want: "true", Args: []string{"--force"}},
			"json":        {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"threads":     {Field: "Read.Workers", Want: "7", Args: []string{"--threads", "7"}},
			"progress":    {Field: "Read.Progress", Want: "nil", Args: []string{"--progress", "none"}},
		})
	})
	t.Run("push", func(t *testing.T) {
		checked["push"] = true
		flagtest.Check(t, pushCommand, parsePush, []string{"DIR", "hf://a/b"}, map[string]flagtest.Row{
			"dry-run":      {Field: "DryRun", Want: "true", Args: []string{"--dry-run"}},
			"private":      {Field: "Push.Private", Want: "true", Args: []string{"--private"}},
			"pull-request": {Field: "Push.PullRequest", Want: "true", Args: []string{"--pull-request"}},
			"message":      {Field: "Push.Message", Want: "m", Args: []string{"--message", "m"}},
			"uploads":      {Field: "Push.Parallel", Want: "7", Args: []string{"--uploads", "7"}},
			"force":        {Field: "Push.Force", Want: "true", Args: []string{"--force"}},
			"json":         {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"threads":      {Field: "Push.Workers", Want: "7", Args: []string{"--threads", "7"}},
			"progress":     {Field: "Push.Progress", Want: "nil", Args: []string{"--progress", "none"}},
		})
	})
	t.Run("card", func(t *testing.T) {
		checked["card"] = true
		flagtest.Check(t, cardCommand, parseCard, []string{"DIR"}, map[string]flagtest.Row{
			"base-model":   {Field: "Card.BaseModel", Want: "a/b", Args: []string{"--base-model", "a/b"}},
			"quantized-by": {Field: "Card.QuantizedBy", Want: "x", Args: []string{"--quantized-by", "x"}},
			"repository":   {Field: "Card.Repository", Want: "a/b", Args: []string{"--repository", "a/b"}},
			"ctx-size":     {Field: "Card.Contexts", Want: "[7]", Args: []string{"--ctx-size", "7"}},
			"template":     {Field: "Template", Want: "f", Args: []string{"--template", "f"}},
			"dry-run":      {Field: "DryRun", Want: "true", Args: []string{"--dry-run"}},
			"json":         {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"force":        {Field: "Force", Want: "true", Args: []string{"--force"}},
		})
	})
	t.Run("modelfile", func(t *testing.T) {
		checked["modelfile"] = true
		flagtest.Check(t, modelfileCommand, parseModelfile, []string{"FILE"}, map[string]flagtest.Row{
			"output":   {Field: "Out", Want: "f", Args: []string{"--output", "f"}},
			"from":     {Field: "From", Want: "x", Args: []string{"--from", "x"}},
			"ctx-size": {Field: "Context", Want: "7", Args: []string{"--ctx-size", "7"}},
			"system":   {Field: "System", Want: "x", Args: []string{"--system", "x"}},
			"template": {Field: "Template", Want: "f", Args: []string{"--template", "f"}},
			"force":    {Field: "Force", Want: "true", Args: []string{"--force", "--output", "f"}},
			"json":     {Field: "JSON", Want: "true", Args: []string{"--json"}},
		})
	})
	t.Run("clean", func(t *testing.T) {
		checked["clean"] = true
		flagtest.Check(t, cleanCommand, parseClean, []string{"DIR"}, map[string]flagtest.Row{
			"remove":     {Field: "Remove", Want: "true", Args: []string{"--remove"}},
			"older-than": {Field: "Older", Want: "1h0m0s", Args: []string{"--older-than", "1h"}},
			"json":       {Field: "JSON", Want: "true", Args: []string{"--json"}},
		})
	})
	t.Run("name", func(t *testing.T) {
		checked["name"] = true
		flagtest.Check(t, nameCommand, parseName, []string{"NAME"}, map[string]flagtest.Row{
			"build":    {Field: "Build", Want: "true", Args: []string{"--build"}},
			"strict":   {Field: "Strict", Want: "true", Args: []string{"--strict"}},
			"encoding": {Field: "Encoding", Want: "x", Args: []string{"--encoding", "x", "--build"}},
			"json":     {Field: "JSON", Want: "true", Args: []string{"--json"}},
		})
	})
	t.Run("render", func(t *testing.T) {
		checked["render"] = true
		flagtest.Check(t, renderCommand, parseRender, []string{"MODEL"}, map[string]flagtest.Row{
			"messages": {Field: "Messages", Want: "f", Args: []string{"--messages", "f"}},
			"tools":    {Field: "Tools", Want: "f", Args: []string{"--tools", "f"}},
			"no-generation-prompt": {Field: "Input.AddGenerationPrompt", Want: "false",
				Args: []string{"--no-generation-prompt"}},
			"chats":          {Field: "Chats", Want: "true", Args: []string{"--chats", "--messages", "f"}},
			"print-template": {Field: "Print", Want: "true", Args: []string{"--print-template"}},
			"template":       {Field: "Template", Want: "n", Args: []string{"--template", "n"}},
			"template-arguments": {Field: "Variables.Names", Want: "[a]",
				Args: []string{"--template-arguments", `{"a": 1}`}},
			"date":  {Field: "Day", Want: "2026-11-26", Args: []string{"--date", "2026-11-26"}},
			"alone": alone,
			"json":  {Field: "JSON", Want: "true", Args: []string{"--json"}},
		})
	})
	t.Run("verify", func(t *testing.T) {
		checked["verify"] = true
		flagtest.Check(t, verifyCommand, parseVerify, []string{"FILE"}, map[string]flagtest.Row{
			"header-only":  {Field: "Look.Structure", Want: "true", Args: []string{"--header-only"}},
			"templates":    {Field: "Templates", Want: "m", Args: []string{"--templates", "m"}},
			"sums":         {Field: "Sums", Want: "f", Args: []string{"--sums", "f"}},
			"manifest":     {Field: "Manifest", Want: "f", Args: []string{"--manifest", "f"}},
			"public-key":   {Field: "PublicKey", Want: "f", Args: []string{"--public-key", "f"}},
			"certificates": {Field: "Certificates", Want: "f", Args: []string{"--certificates", "f"}},
			"signature": {Field: "Signature", Want: "f",
				Args: []string{"--signature", "f", "--public-key", "k"}},
			"json":    {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"threads": {Field: "Look.Workers", Want: "3", Args: []string{"--threads", "3"}},
		})
	})
	t.Run("pad-vocab", func(t *testing.T) {
		checked["pad-vocab"] = true
		flagtest.Check(t, padVocabCommand, parsePadVocab, []string{"--multiple", "8", "FILE", "OUT"},
			writes(map[string]flagtest.Row{
				"output":   named("Out", "--multiple", "8"),
				"size":     {Field: "Pad.Size", Want: "9", Args: []string{"--size", "9"}},
				"multiple": {Field: "Pad.Multiple", Want: "64", Args: []string{"--multiple", "64"}},
				"like":     {Field: "Pad.Like", Want: "3", Args: []string{"--like", "3"}},
			}))
	})
	t.Run("endian", func(t *testing.T) {
		checked["endian"] = true
		flagtest.Check(t, endianCommand, parseEndian, []string{"FILE", "OUT"}, writes(map[string]flagtest.Row{
			"output": named("Out"),
			"to":     {Field: "Big", Want: "false", Args: []string{"--to", "little"}},
			"alone":  alone,
		}))
	})
	t.Run("quality", func(t *testing.T) {
		checked["quality"] = true
		rows := flagtest.Quantization(t, "--type", "iq4_xs")
		maps.Copy(rows, flagtest.Checkpoint)
		maps.Copy(rows, map[string]flagtest.Row{
			"type":    {Field: "Recipes", Want: "[Q4_K_M Q8_0]", Args: []string{"--type", "q4_k", "--type", "Q8_0"}},
			"imatrix": {Field: "Quantize.Matrix", Want: "f", Args: []string{"--imatrix", "f"}},
			"via":     {Field: "Convert.Type", Want: "f32", Args: []string{"--via", "f32"}},
			"remote":  {Field: "Models", Want: "[hf://MODEL]", Args: []string{"--remote"}},
			"json":    {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"threads": {Field: "Workers", Want: "7", Args: []string{"--threads", "7"}},
			"html":    {Field: "HTML", Want: "f", Args: []string{"--html", "f"}},
			"force":   {Field: "Force", Want: "true", Args: []string{"--force"}},
		})
		flagtest.Check(t, qualityCommand, parseQuality, []string{"BASE", "MODEL"}, rows)
	})
	t.Run("hash", func(t *testing.T) {
		checked["hash"] = true
		kind := func(name, want string) flagtest.Row {
			return flagtest.Row{Field: "Kinds", Want: want, Args: []string{"--" + name}}
		}
		xxh64 := kind("xxh64", "[xxh64]")
		xxh64.None = true // it is the default
		flagtest.Check(t, hashCommand, parseHash, []string{"FILE"}, map[string]flagtest.Row{
			"xxh64":    xxh64,
			"sha1":     kind("sha1", "[sha1]"),
			"sha256":   kind("sha256", "[sha256]"),
			"uuid":     kind("uuid", "[uuid]"),
			"all":      kind("all", "[xxh64 sha1 sha256 uuid]"),
			"no-layer": {Field: "Whole", Want: "true", Args: []string{"--no-layer"}},
			"check":    {Field: "Check", Want: "f", Args: []string{"--check", "f"}},
			"json":     {Field: "JSON", Want: "true", Args: []string{"--json"}},
			"alone":    alone,
		})
	})
	t.Run("split", func(t *testing.T) {
		checked["split"] = true
		flagtest.Check(t, splitCommand, parseSplit, []string{"FILE", "PREFIX"}, writes(map[string]flagtest.Row{
			"output":                named("Prefix"),
			"max-tensors":           {Field: "Cut.MaxTensors", Want: "7", Args: []string{"--max-tensors", "7"}},
			"max-size":              {Field: "Cut.MaxBytes", Want: "2000000", Args: []string{"--max-size", "2M"}},
			"no-tensor-first-split": {Field: "Bare", Want: "true", Args: []string{"--no-tensor-first-split"}},
			"dry-run":               {Field: "DryRun", Want: "true", Args: []string{"--dry-run"}},
		}))
	})
	t.Run("merge", func(t *testing.T) {
		checked["merge"] = true
		flagtest.Check(t, mergeCommand, parseMerge, []string{"FIRST", "OUT"}, writes(map[string]flagtest.Row{
			"output": named("Out"),
			"clean":  {Field: "Clean", Want: "true", Args: []string{"--clean"}},
		}))
	})
	t.Run("export", func(t *testing.T) {
		checked["export"] = true
		flagtest.Check(t, exportCommand, parseExport, []string{"FILE", "DIR"}, writes(map[string]flagtest.Row{
			"type":     {Field: "Export.Type", Want: "F16", Args: []string{"--type", "f16"}},
			"hf":       {Field: "Export.HF", Want: "true", Args: []string{"--hf"}},
			"max-size": {Field: "Export.MaxShard", Want: "7000", Args: []string{"--max-size", "7k"}},
			"output":   named("Dir"),
		}))
	})
	t.Run("submit", func(t *testing.T) {
		checked["submit"] = true
		job := func(rows map[string]flagtest.Row, names ...string) map[string]flagtest.Row {
			all := map[string]flagtest.Row{
				"parts":   {Field: "Parts", Want: "7", Args: []string{"--parts", "7"}},
				"at-once": {Field: "AtOnce", Want: "3", Args: []string{"--at-once", "3"}},
				"retries": {Field: "Retries", Want: "3", Args: []string{"--retries", "3"}},
				"cpus":    {Field: "CPUs", Want: "3", Args: []string{"--cpus", "3"}},
				"mem":     {Field: "Memory", Want: "4000000000", Args: []string{"--mem", "4G"}},
				"grace":   {Field: "Grace", Want: "1m0s", Args: []string{"--grace", "1m"}},
				"name":    {Field: "Name", Want: "n", Args: []string{"--name", "n"}},
			}
			for _, name := range append(names, "parts", "retries", "name") {
				row := all[name]
				row.Field = "Job." + row.Field
				rows[name] = row
			}
			rows["json"] = flagtest.Row{Field: "Job.Name", None: true, Args: []string{"--json"}}
			return rows
		}
		pods := func(rows map[string]flagtest.Row) map[string]flagtest.Row {
			for name, row := range map[string]flagtest.Row{
				"image":     {Field: "Pods.Image", Want: "j", Args: []string{"--image", "j"}},
				"namespace": {Field: "Pods.Namespace", Want: "n", Args: []string{"--namespace", "n"}},
				"claim":     {Field: "Pods.Claim", Want: "c", Args: []string{"--claim", "c"}},
				"mount":     {Field: "Pods.Mount", Want: "/data", Args: []string{"--mount", "/data"}},
				"user":      {Field: "Pods.User", Want: "7", Args: []string{"--user", "7"}},
				"secret":    {Field: "Pods.Secret", Want: "s", Args: []string{"--secret", "s"}},
			} {
				rows[name] = row
			}
			return rows
		}
		base := []string{"--parts", "2", "ggquant", "IN", "Q8_0"}
		flagtest.Check(t, submitSlurmCommand, parseSlurm, base,
			job(map[string]flagtest.Row{
				"time":      {Field: "Time", Want: "4h0m0s", Args: []string{"--time", "4h"}},
				"partition": {Field: "Partition", Want: "p", Args: []string{"--partition", "p"}},
				"account":   {Field: "Account", Want: "a", Args: []string{"--account", "a"}},
				"sbatch":    {Field: "Options", Want: "[--a=b,c --d]", Args: []string{"--sbatch", "--a=b,c", "--sbatch=--d"}},
			}, "at-once", "cpus", "mem", "grace"))
		for _, k := range []struct {
			command func() *cli.Command
			rows    map[string]flagtest.Row
		}{
			{submitKubernetesCommand, map[string]flagtest.Row{}},
			{submitKueueCommand, map[string]flagtest.Row{
				"queue": {Field: "Queue", Want: "q", Args: []string{"--queue", "q"}}}},
		} {
			k.rows["storage"] = flagtest.Row{Field: "Storage", Want: "1073741824", Args: []string{"--storage", "1GiB"}}
			k.rows["storage-class"] = flagtest.Row{Field: "StorageClass", Want: "c", Args: []string{"--storage-class", "c"}}
			k.rows["wait"] = flagtest.Row{Field: "Wait", Want: "1h0m0s", Args: []string{"--wait", "1h"}}
			flagtest.Check(t, k.command, parseKubernetes, base, job(pods(k.rows), "at-once", "cpus", "mem", "grace"))
		}
		flagtest.Check(t, submitArgoCommand, parseArgo, base, job(pods(map[string]flagtest.Row{
			"service-account": {Field: "ServiceAccount", Want: "a", Args: []string{"--service-account", "a"}},
		}), "at-once", "cpus", "mem"))
		secret := func(value string) flagtest.Row {
			return flagtest.Row{Field: "Secrets", Want: "[" + value + " Y]", Args: []string{"--secret", value, "--secret=Y"}}
		}
		flagtest.Check(t, submitAWSBatchCommand, parseAWSBatch, base, job(map[string]flagtest.Row{
			"queue":          {Field: "Queue", Want: "q", Args: []string{"--queue", "q"}},
			"image":          {Field: "Image", Want: "i", Args: []string{"--image", "i"}},
			"role":           {Field: "Role", Want: "r", Args: []string{"--role", "r"}},
			"execution-role": {Field: "ExecutionRole", Want: "r", Args: []string{"--execution-role", "r"}},
			"secret":         secret("X=arn:a"),
			"efs":            {Field: "FileSystem", Want: "fs-1", Args: []string{"--efs", "fs-1"}},
			"fargate":        {Field: "Fargate", Want: "true", Args: []string{"--fargate"}},
			"time":           {Field: "Time", Want: "4h0m0s", Args: []string{"--time", "4h"}},
		}, "cpus", "mem"))
		flagtest.Check(t, submitHFJobsCommand, parseHFJobs, base, job(map[string]flagtest.Row{
			"image":     {Field: "Image", Want: "i", Args: []string{"--image", "i"}},
			"flavor":    {Field: "Flavor", Want: "f", Args: []string{"--flavor", "f"}},
			"namespace": {Field: "Namespace", Want: "n", Args: []string{"--namespace", "n"}},
			"secret":    secret("X"),
			"volume":    {Field: "Volumes", Want: "[hf://o/m:/m]", Args: []string{"--volume", "hf://o/m:/m"}},
			"time":      {Field: "Time", Want: "4h0m0s", Args: []string{"--time", "4h"}},
		}))
		flagtest.Check(t, submitSkyPilotCommand, parseSkyPilot, base, job(map[string]flagtest.Row{
			"setup":  {Field: "Setup", Want: "s", Args: []string{"--setup", "s"}},
			"image":  {Field: "Image", Want: "i", Args: []string{"--image", "i"}},
			"infra":  {Field: "Infra", Want: "aws", Args: []string{"--infra", "aws"}},
			"spot":   {Field: "Spot", Want: "true", Args: []string{"--spot"}},
			"secret": secret("X"),
		}, "cpus", "mem"))
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

func TestDocumented(t *testing.T) {
	flagtest.Documented(t, slices.Concat(command().Commands, imatrixCommand().Commands, submitCommand().Commands)...)
}

func TestTree(t *testing.T) { flagtest.Tree(t, command) }

package flagtest

// Checkpoint has the rows of runs.CheckpointFlags; the options hold a convert.Options as their field Convert.
var Checkpoint = map[string]Row{
	"arch":       {Field: "Convert.Class", Args: []string{"--arch", "x"}, Want: "x"},
	"model-name": {Field: "Convert.ModelName", Args: []string{"--model-name", "x"}, Want: "x"},
	"metadata": {Field: "Convert.Override", Args: []string{"--metadata", "m.json"},
		Want: "m.json"},
	"pre": {Field: "Convert.Pre", Args: []string{"--pre", "gpt-2"}, Want: "gpt-2"},
	"embed-hf-tokenizer": {Field: "Convert.EmbedTokenizer", Args: []string{"--embed-hf-tokenizer"},
		Want: "true"},
	"fuse-qkv": {Field: "Convert.FuseQKV", Args: []string{"--fuse-qkv"}, Want: "true"},
	"fuse-gate-up-exps": {Field: "Convert.FuseGateUp", Args: []string{"--fuse-gate-up-exps"},
		Want: "true"},
	"fp8-as-q8":      {Field: "Convert.Float8AsQ8", Args: []string{"--fp8-as-q8"}, Want: "true"},
	"mistral-format": {Field: "Convert.Mistral", Args: []string{"--mistral-format"}, Want: "true"},
	"sentence-transformers-dense-modules": {Field: "Convert.Dense",
		Args: []string{"--sentence-transformers-dense-modules"}, Want: "true"},
	"outside-links": {Field: "Convert.OutsideLinks", Args: []string{"--outside-links"},
		Want: "true"},
	"merge-lora": {Field: "Convert.Merge", Args: []string{"--merge-lora", "a:0.5"},
		Want: "[{Dir:a Scale:0.5}]"},
	"cache": {Field: "Convert.Remote.Cache", Args: []string{"--cache", "d"}, Want: "d"},

	"use-temp-file": {Args: []string{"--use-temp-file"}, None: true, Field: "Convert"},
	"no-lazy":       {Args: []string{"--no-lazy"}, None: true, Field: "Convert"},
	"disable-mistral-community-chat-template": {Args: []string{"--disable-mistral-community-chat-template"}, None: true,
		Field: "Convert"},

	"mtp":              {Field: "Convert.NextN", Args: []string{"--mtp"}, Want: "alone"},
	"no-nextn":         {Field: "Convert.NextN", Args: []string{"--no-nextn"}, Want: "left out"},
	"dspark":           {Field: "Convert.DSpark", Args: []string{"--dspark"}, Want: "true"},
	"mmproj":           {Field: "Convert.MMProj", Args: []string{"--mmproj"}, Want: "true"},
	"target-model-dir": {Field: "Convert.Target", Args: []string{"--target-model-dir", "d"}, Want: "d"},
}

// Runs has the rows of runs.WriteFlags; the options hold a writer.Options as their field Write.
var Runs = map[string]Row{
	"resume":     {Field: "Write.Journal.Resume", Args: []string{"--resume"}, Want: "true"},
	"part":       {Field: "Write.Journal.Parts", Args: []string{"--part", "2/7"}, Want: "7"},
	"part-files": {Field: "Write.Journal.PartDir", Args: []string{"--part-files", "d", "--finish"}, Want: "d"},
	"finish":     {Field: "Write.Journal.Finish", Args: []string{"--finish"}, Want: "true"},
	"manifest":   {Field: "Manifest.Path", Args: []string{"--manifest", "m.json"}, Want: "m.json"},
	"verify":     {Field: "Write.Verify", Args: []string{"--verify"}, Want: "true"},
}

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSubmit(t *testing.T) {
	slurm, k8s := expect(t, "submit", "slurm"), expect(t, "submit", "k8s")
	command := []string{"--parts", "16", "--", "ggquant", "--imatrix", "a b", "in", "--", "-out", "Q4_K_M"}
	slurm(0, "\n'ggquant' '--part' 'auto/16' '--resume' '--imatrix' 'a b' 'in' '--' '-out' 'Q4_K_M' &\n", command...)
	slurm(0, "\n'ggquant' '--finish' '--imatrix' 'a b' 'in' '--' '-out' 'Q4_K_M' &\n", command...)
	k8s(0, "completions: 16\n", append([]string{"--image", "i", "--claim", "c"}, command...)...)
	slurm(2, "0 parts: want 1 to 100000; set the number with --parts N", "--", "ggquant", "in", "Q8_0")
	slurm(2, "no command", "--parts", "2")
	slurm(2, "--part: parts, --resume", "--parts", "2", "--", "ggquant", "--part", "1/2", "in", "Q8_0")
	slurm(2, "is not a size", "--parts", "2", "--mem", "much", "--", "ggquant", "in", "Q8_0")
	k8s(2, "do not run as root", append([]string{"--image", "i", "--claim", "c", "--user", "0"}, command...)...)
	k8s(2, "neither a claim nor", append([]string{"--image", "i"}, command...)...)
	expect(t, "submit", "kueue")(2, "want --queue NAME", append([]string{"--image", "i", "--claim", "c"}, command...)...)

	text := slurm(0, "", command...)
	var r submitResult
	if err := json.Unmarshal([]byte(slurm(0, "", append([]string{"--json"}, command...)...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Job != text || r.Name != "ggquant" || r.Parts != 16 || r.Scheduler != "slurm" ||
		!slices.Equal(r.Finish, append([]string{"ggquant", "--finish"}, command[4:]...)) {
		t.Errorf("%+v", r)
	}
	if !strings.HasPrefix(text, "#!/bin/sh\n") {
		t.Error(text)
	}
}

// TestSubmitPrintsBytes checks that arguments with control characters, which are escaped on terminals, are printed
// unchanged.
func TestSubmitPrintsBytes(t *testing.T) {
	slurm := expect(t, "submit", "slurm", "--parts", "2")
	for _, name := range []string{"caf\xe9", "a\u2028b\u2029c", "a\x7fb", "a\x1b[31mb", "a\u202eb", "\u0085",
		"\xff\xfe", "a\tb", "e\xcc", "a\rb"} {
		want := "'ggquant' '--finish' '" + strings.ReplaceAll(name, "\r", `'"$cr"'`) + "' 'out.gguf' 'Q8_0' &\n"
		slurm(0, want, "--", "ggquant", name, "out.gguf", "Q8_0")
		if !utf8.ValidString(name) {
			slurm(2, "is not UTF-8", "--json", "--", "ggquant", name, "out.gguf", "Q8_0")
			continue
		}
		var r submitResult
		if err := json.Unmarshal([]byte(slurm(0, "", "--json", "--", "ggquant", name, "out.gguf", "Q8_0")),
			&r); err != nil || r.Finish[2] != name {
			t.Errorf("%q: %+v, %v", name, r, err)
		}
		expect(t, "submit", "k8s")(0, "completions: 2", "--parts", "2", "--image", "i", "--claim", "c", "--", "ggquant",
			name, "out.gguf", "Q8_0")
	}
}

// TestSubmitParsesTheCommand checks commands that would fail in every part, and some that would not.
func TestSubmitParsesTheCommand(t *testing.T) {
	for scheduler, flags := range map[string][]string{"slurm": {"--parts", "4"},
		"k8s": {"--parts", "4", "--image", "i", "--claim", "c"}} {
		run := expect(t, append([]string{"submit", scheduler}, append(flags, "--")...)...)
		for _, c := range []struct{ command, want string }{
			{"ggquant in.gguf out.gguf Q9_Z", `unknown quantization type "Q9_Z"`},
			{"ggquant in.gguf out.gguf", "no quantization type"},
			{"ggquant --calibrate text in.gguf out.gguf Q4_K_M",
				"--calibrate runs the model, which every part would do"},
			{"ggquant --nosuch in.gguf out.gguf Q4_K_M", "-nosuch"},
			{"ggquant in.gguf out.gguf Q4_K_M --tensor-typ x=q8_0", "did you mean --tensor-type"},
			{"ggquant in.gguf out.gguf Q4_K_M --output-tensor-type q9", "unknown tensor type"},
			{"ggquant in.gguf out.gguf Q4_K_M 4 5", "surplus argument"},
			{"ggquant in.gguf out.gguf Q4_K_M --threads x", "threads"},
			{"ggconv in out.gguf --outtype q9", `output type "q9"`},
			{"ggconv --split-max-size x in out.gguf", `"x" is not a size`},
			{"ggconv in out.gguf more", "surplus argument"},
			{"ggconv --print-supported-models in", "the command would write nothing"},
			{"ggeval perplexity --nosuch -f t m.gguf", "-nosuch"},
			{"ggeval perplexity -f t m.gguf", "want --part-files OUT"},
			{"ggeval perplexity --part-files p m.gguf", "no text"},
			{"ggeval perplexity --part-files p -f t m.gguf n.gguf", "surplus argument"},
			{"ggeval compare --part-files p -f t m.gguf", "want BASE [MODEL...]"},
			{"ggeval compare --part-files p -f t --type Q9_Z m.gguf", `unknown quantization type "Q9_Z"`},
			{"ggeval imatrix -o o -f t m.gguf", "want --sum-chunks N"},
			{"ggeval imatrix -f t --sum-chunks 4 m.gguf", "no output"},
		} {
			run(2, c.want, strings.Fields(c.command)...)
		}
		// Files need not exist here, and the check takes no part number from the environment.
		run(0, "4", "ggquant", "--tensor-type-file", "/nowhere/rules", "--imatrix", "/nowhere/im.gguf",
			"/nowhere/in.gguf", "/nowhere/out.gguf", "Q4_K_M")
		run(0, "4", "ggquant", "--recipe", "/nowhere/recipe", "--verify", "in.gguf", "out.gguf", "Q4_K_M")
		run(0, "4", "ggquant", "in.gguf", "s3://bucket/out.gguf", "Q4_K_M")
		run(0, "4", "ggquant", "in.gguf", "out.gguf", "Q4_K_M", "--part-files=d", "--manifest=m")
		run(0, "4", "ggeval", "compare", "--part-files", "p", "-f", "t", "--html", "x", "m.gguf", "n.gguf")
		run(0, "4", "ggconv", "hf://org/model", "out.gguf")
		run(0, "4", "ggeval", "perplexity", "--part-files", "/nowhere/p", "-f", "/nowhere/t", "/nowhere/m.gguf")
		run(0, "4", "ggeval", "compare", "--part-files", "p", "-f", "t", "m.gguf", "n.gguf")
		run(0, "4", "ggeval", "imatrix", "-o", "o.gguf", "-f", "t", "--sum-chunks", "8", "m.gguf")
	}
}

// TestSubmitMemory passes sizes on in the user's units.
func TestSubmitMemory(t *testing.T) {
	command := []string{"--", "ggquant", "in.gguf", "out.gguf", "Q4_K_M"}
	for _, c := range []struct{ size, slurm, k8s string }{
		{"4G", "4G", "4G"}, {"4GiB", "4G", "4Gi"}, {"1.5G", "1500M", "1500M"}, {"2MiB", "2M", "2Mi"},
		{"40000", "40K", "40k"}, {"1T", "1T", "1T"}, {"1234567", "2M", "1234567"},
	} {
		expect(t, "submit", "slurm", "--parts", "2", "--mem", c.size)(0, "'--mem="+c.slurm+"'", command...)
		expect(t, "submit", "k8s", "--parts", "2", "--image", "i", "--claim", "c", "--mem", c.size)(0,
			`memory: "`+c.k8s+`"`, command...)
	}
}

// diskless has flags of every scheduler whose machines share no disk, or none without further flags.
var diskless = map[string][]string{
	"k8s":       {"--parts", "4", "--image", "i"},
	"kueue":     {"--parts", "4", "--image", "i", "--queue", "q"},
	"argo":      {"--parts", "4", "--image", "i"},
	"aws-batch": {"--parts", "4", "--image", "i", "--queue", "q", "--cpus", "2", "--mem", "4G"},
	"hf-jobs":   {"--parts", "4", "--image", "i"},
	"skypilot":  {"--parts", "4", "--image", "i"},
}

// TestSubmitWithoutDisk checks that files of a machine are refused where machines share no disk, and that the error
// names the file and what else is possible.
func TestSubmitWithoutDisk(t *testing.T) {
	for scheduler, flags := range diskless {
		run := expect(t, append([]string{"submit", scheduler}, append(flags, "--")...)...)
		for _, c := range []struct{ command, want string }{
			{"ggquant hf://o/m out.gguf Q4_K_M", "output out.gguf: the machines share no disk: want s3://BUCKET/KEY"},
			{"ggquant hf://o/m --out-dir out Q4_K_M", "output out: the machines share no disk"},
			{"ggquant hf://o/m Q4_K_M", "the machines share no disk"},
			{"ggquant in.gguf s3://bucket/k.gguf Q4_K_M", "input in.gguf: the machines share no disk: want hf://ORG/NAME"},
			{"ggquant --imatrix im.gguf hf://o/m s3://bucket/k.gguf Q4_K_M", "input im.gguf: the machines"},
			{"ggquant --part-files d hf://o/m s3://bucket/k.gguf Q4_K_M", "output d: the machines"},
			{"ggconv hf://o/m -o out.gguf", "output out.gguf: the machines"},
			{"ggconv hf://o/m", "the machines share no disk"},
			{"ggeval perplexity --part-files p -f t hf://o/m/x.gguf", "output p: the machines"},
			{"ggeval imatrix -o o.gguf -f t --sum-chunks 8 hf://o/m/x.gguf", "output o.gguf: the machines"},
			{"ggeval imatrix -o s3://bucket/o.gguf -f t --sum-chunks 8 hf://o/m/x.gguf", "input t: the machines"},
			{"ggeval imatrix -o hf://o/n/o.gguf -f hf://o/m/t --sum-chunks 8 hf://o/m/x.gguf", "want a file, or an object"},
			{"ggeval imatrix -o s3://bucket/o.gguf --part-files p -f hf://o/m/t --sum-chunks 8 hf://o/m/x.gguf",
				"output p: the machines"},
			{"ggeval compare --part-files s3://bucket/p/ --html x -f hf://o/m/t hf://o/m s3://bucket/q.gguf",
				"output x: the machines"},
			{"ggeval compare --part-files s3://bucket/p/ -f hf://o/m/t --kl-divergence-base s3://bucket/l s3://bucket/q.gguf",
				"--kl-divergence-base s3://bucket/l: is read from a file"},
		} {
			run(2, c.want, strings.Fields(c.command)...)
		}
		text := run(0, "", "ggquant", "hf://o/m", "s3://bucket/k.gguf", "Q4_K_M")
		if strings.Contains(text, "persistentVolumeClaim") || strings.Contains(text, "PersistentVolumeClaim") ||
			strings.Contains(text, "efs") {
			t.Errorf("%s: there is a volume\n%s", scheduler, text)
		}
		for _, want := range []string{"auto/4", "--finish", "s3://bucket/k.gguf"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %s\n%s", scheduler, want, text)
			}
		}
	}
	for scheduler, flags := range diskless {
		run := expect(t, append([]string{"submit", scheduler}, append(flags, "--")...)...)
		for _, command := range []string{
			"ggeval imatrix -o s3://bucket/im.gguf -f hf://datasets/o/t/t.txt --sum-chunks 8 hf://o/m",
			"ggeval imatrix -o s3://bucket/im.gguf --part-files s3://bucket/im/ -f s3://bucket/t --in-file s3://bucket/i " +
				"--sum-chunks 8 hf://o/m",
			"ggeval perplexity --part-files s3://bucket/p/ --html s3://bucket/p.html -f https://host/t hf://o/m",
			"ggeval compare --part-files s3://bucket/p -f hf://o/m/t hf://o/m s3://bucket/q.gguf",
			"ggquant --imatrix s3://bucket/im.gguf --tensor-type-file hf://o/m/rules hf://o/m s3://bucket/k.gguf Q4_K_M",
			"ggconv --metadata s3://bucket/m.json hf://o/m s3://bucket/k.gguf",
		} {
			text := run(0, "--finish", strings.Fields(command)...)
			for _, word := range strings.Fields(command) {
				if !strings.Contains(text, word) {
					t.Errorf("%s: %q: there is no %s\n%s", scheduler, command, word, text)
				}
			}
		}
	}
	run := expect(t, "submit", "hf-jobs", "--parts", "4", "--image", "i", "--volume", "hf://o/m:/model", "--volume",
		"hf://datasets/o/texts:/texts:ro")
	run(0, "'--volume=hf://o/m:/model'", "--", "ggquant", "--imatrix", "/texts/im.gguf", "/model", "s3://bucket/k.gguf", "Q4_K_M")
	run(2, "input /models", "--", "ggquant", "/models", "s3://bucket/k.gguf", "Q4_K_M")
	expect(t, "submit", "aws-batch", "--parts", "4", "--image", "i", "--queue", "q", "--cpus", "2", "--mem", "4G",
		"--efs", "fs-1")(0, `"fileSystemId":"fs-1"`, "--", "ggquant", "in.gguf", "out.gguf", "Q4_K_M")
}

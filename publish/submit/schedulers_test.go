package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/fault"
)

// remote is a job whose machines need no common disk.
func remote(words ...string) Job {
	return Job{Name: "X", Command: slices.Concat([]string{"ggquant", "hf://o/m", "s3://b/k.gguf"}, words), Parts: 3,
		Retries: 2, CPUs: 4, Memory: 5e9, Inputs: []string{"hf://o/m"}, Outputs: []string{"s3://b/k.gguf"}}
}

func TestKueue(t *testing.T) {
	k := Kubernetes{Job: remote(), Pods: Pods{Image: "i"}, Queue: "q"}
	manifest, err := k.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, manifest)
	if len(all) != 2 {
		t.Fatalf("%d documents, want 2\n%s", len(all), manifest)
	}
	for i, want := range []any{"1", nil} {
		if at(t, all[i], "spec", "suspend") != true ||
			at(t, all[i], "metadata", "labels", "kueue.x-k8s.io/queue-name") != "q" ||
			at(t, all[i], "metadata", "annotations", "kueue.x-k8s.io/job-min-parallelism") != want ||
			at(t, all[i], "spec", "template", "metadata", "labels", "kueue.x-k8s.io/queue-name") != nil {
			t.Errorf("document %d\n%s", i, manifest)
		}
		pod := at(t, all[i], "spec", "template", "spec")
		if v := at(t, pod, "volumes").([]any); len(v) != 1 || at(t, v, 0, "name") != "tmp" {
			t.Errorf("%v, want only a volume for /tmp", v)
		}
		if dir := at(t, pod, "containers", 0, "workingDir"); dir != "/tmp" {
			t.Errorf("without a volume it runs in %v", dir)
		}
	}
}

func TestArgo(t *testing.T) {
	a := Argo{Job: remote("a$(X)"), Pods: Pods{Image: "i", Namespace: "n", Claim: "c", Mount: "/d", Secret: "s"},
		ServiceAccount: "acc"}
	a.AtOnce = 2
	manifest, err := a.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	w := documents(t, manifest)[0]
	part, finish := at(t, w, "spec", "templates", 1), at(t, w, "spec", "templates", 2)
	for _, c := range []struct{ got, want any }{
		{at(t, w, "kind"), "Workflow"},
		{at(t, w, "metadata", "generateName"), "x-"},
		{at(t, w, "spec", "parallelism"), 2},
		{at(t, w, "spec", "serviceAccountName"), "acc"},
		{at(t, w, "spec", "templates", 0, "steps", 0), []any{map[string]any{"name": "parts", "template": "part",
			"arguments":    map[string]any{"parameters": []any{map[string]any{"name": "part", "value": "{{item}}"}}},
			"withSequence": map[string]any{"start": "1", "end": "3"}}}},
		{at(t, w, "spec", "templates", 0, "steps", 1), []any{map[string]any{"name": "finish", "template": "finish"}}},
		{at(t, part, "container", "env"), []any{
			map[string]any{"name": "GGFORGE_PART", "value": "{{inputs.parameters.part}}"},
			map[string]any{"name": "GGFORGE_PARTS", "value": "3"}}},
		{at(t, part, "container", "command"), []any{"ggquant", "--part", "auto/3", "--resume", "hf://o/m",
			"s3://b/k.gguf", "a$$(X)"}},
		{at(t, part, "retryStrategy", "limit"), "2"},
		{at(t, finish, "container", "command"), []any{"ggquant", "--finish", "hf://o/m", "s3://b/k.gguf", "a$$(X)"}},
		{at(t, finish, "container", "workingDir"), "/d"},
		{at(t, finish, "container", "env"), nil},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%v, want %v\n%s", c.got, c.want, manifest)
		}
	}
	a.Command = append(a.Command, "{{workflow.name}}")
	if _, err := a.Manifest(); !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), "Argo takes {{") {
		t.Error(err)
	}
}

// clis are shell scripts that replace the CLIs of AWS and of the hub. They record their arguments, each ended by a
// NUL, in the folder $LOG. hf fails for the jobs in $FAIL at first.
var clis = map[string]string{
	"aws": `for a; do printf '%s\0' "$a"; done >"$LOG/aws-$(ls "$LOG" | grep -c aws-)"
case $2 in register-job-definition) echo arn:aws:batch:definition/x:1 ;; *) echo "id-$(ls "$LOG" | grep -c aws-)" ;; esac`,
	"hf": `for a; do printf '%s\0' "$a"; done >"$LOG/hf-$(printf %02d "$(ls "$LOG" | grep -c hf-)")"
case $2 in
run) part=0; for a; do case $a in GGFORGE_PART=*) part=${a#*=} ;; esac; done
	printf 'Job started\n  id: %024x\n  url: https://hub.example/jobs/n/%024x\n' "$part" "$part" ;;
wait) for id; do :; done; case " ${FAIL:-} " in *" $((0x${id#00000000000000000000})) "*)
	[ -e "$LOG/again-$id" ] && [ -z "${ALWAYS:-}" ] || { : >"$LOG/again-$id"; exit 1; } ;; esac ;;
esac`,
}

// calls returns the arguments of the calls of a program that the fakes have recorded, and forgets them.
func calls(t *testing.T, log, program string) (list [][]string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(log, program+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data := kept(t, log, filepath.Base(name))
		words := strings.Split(data, "\x00")
		list = append(list, words[:len(words)-1])
	}
	more, _ := filepath.Glob(filepath.Join(log, "again-*"))
	for _, name := range more {
		os.Remove(name)
	}
	return list
}

func TestAWSBatch(t *testing.T) {
	run, log := cluster(t)
	a := AWSBatch{Job: remote("it's\n'", "é$HOME"), Image: "img", Queue: "q", Role: "arn:aws:iam::1:role/r",
		ExecutionRole: "arn:e", Secrets: []string{"HF_TOKEN=arn:aws:secretsmanager:s"}, Fargate: true, Time: time.Hour}
	script, err := a.Script()
	if err != nil {
		t.Fatal(err)
	}
	out, code := run(script)
	got := calls(t, log, "aws")
	if code != 0 || out != "id-2 id-3\n" || len(got) != 3 {
		t.Fatalf("exit code %d, %q, %q\n%s", code, out, got, script)
	}
	input := func(i int) (f fields) {
		k := slices.Index(got[i], "--cli-input-json")
		if err := json.Unmarshal([]byte(got[i][k+1]), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct{ got, want any }{
		{at(t, input(0), "jobDefinitionName"), "x"},
		{at(t, input(0), "containerProperties", "resourceRequirements"), []any{
			map[string]any{"type": "VCPU", "value": "4"}, map[string]any{"type": "MEMORY", "value": "4769"}}},
		{at(t, input(0), "containerProperties", "secrets", 0), map[string]any{"name": "HF_TOKEN",
			"valueFrom": "arn:aws:secretsmanager:s"}},
		{at(t, input(0), "retryStrategy", "attempts"), 3},
		{at(t, input(0), "platformCapabilities"), []any{"FARGATE"}},
		{at(t, input(0), "timeout", "attemptDurationSeconds"), 3600},
		{at(t, input(1), "arrayProperties", "size"), 3},
		{at(t, input(1), "jobName"), "x-parts"},
		{at(t, input(1), "containerOverrides", "command"), a.Part()},
		{at(t, input(2), "containerOverrides", "command"), a.Finish()},
		{at(t, input(2), "arrayProperties"), nil},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%v, want %v\n%s", c.got, c.want, script)
		}
	}
	if !slices.Contains(got[2], "jobId=id-2") || !slices.Contains(got[1], "arn:aws:batch:definition/x:1") {
		t.Errorf("%q", got)
	}
	for want, change := range map[string]func(a *AWSBatch){
		"no queue":                func(a *AWSBatch) { a.Queue = "" },
		"AWS Batch needs both":    func(a *AWSBatch) { a.CPUs = 0 },
		"1 parts: an array":       func(a *AWSBatch) { a.Parts = 1 },
		"needs an execution role": func(a *AWSBatch) { a.ExecutionRole = "" },
		"want NAME=ARN":           func(a *AWSBatch) { a.Secrets = []string{"HF_TOKEN=hf_value"} },
		"wants a minute":          func(a *AWSBatch) { a.Time = time.Second },
		"a file system of EFS":    func(a *AWSBatch) { a.Outputs = []string{"out"} },
		"takes Ref::":             func(a *AWSBatch) { a.Command = append(slices.Clone(a.Command), "Ref::x") },
	} {
		bad := a
		change(&bad)
		_, err := bad.Script()
		if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hf_value") {
			t.Errorf("a secret is in the error: %v", err)
		}
	}
}

// TestHFJobs runs the script with a CLI that records what it gets, also when jobs fail.
func TestHFJobs(t *testing.T) {
	run, log := cluster(t)
	h := HFJobs{Job: remote("it's\n'", "--token"), Image: "img", Flavor: "cpu-upgrade", Namespace: "n",
		Secrets: []string{"HF_TOKEN"}, Volumes: []string{"hf://o/m:/m"}, Time: time.Hour}
	script, err := h.Script()
	if err != nil {
		t.Fatal(err)
	}
	options := []string{"--label=ggforge=x", "--flavor=cpu-upgrade", "--namespace=n", "--timeout=3600s",
		"--secrets=HF_TOKEN", "--volume=hf://o/m:/m", "--", "img"}
	part := func(k int) []string {
		return slices.Concat([]string{"jobs", "run", "--detach", "--env", fmt.Sprint("GGFORGE_PART=", k), "--env",
			"GGFORGE_PARTS=3"}, options, h.Part())
	}
	wait := func(k int) []string { return []string{"jobs", "wait", "--namespace=n", fmt.Sprintf("%024x", k)} }
	finish := slices.Concat([]string{"jobs", "run"}, options, h.Finish())
	all := [][]string{part(1), part(2), part(3), wait(1), wait(2), wait(3)}
	for _, c := range []struct {
		env  []string
		want [][]string
		code int
	}{
		{nil, slices.Concat(all, [][]string{finish}), 0},
		{[]string{"FAIL=2"}, slices.Concat(all, [][]string{part(2), wait(2), finish}), 0},
		{[]string{"FAIL=1 3"}, slices.Concat(all, [][]string{part(1), part(3), wait(1), wait(3), finish}), 0},
		{[]string{"FAIL=2", "ALWAYS=1"}, slices.Concat(all, [][]string{part(2), wait(2), part(2), wait(2)}), 7},
	} {
		out, code := run(script, c.env...)
		if got := calls(t, log, "hf"); code != c.code || !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%v: exit code %d, want %d; %q, want %q\n%s%s", c.env, code, c.code, got, c.want, script, out)
		}
	}
	for want, change := range map[string]func(h *HFJobs){
		"no image":              func(h *HFJobs) { h.Image = "" },
		"want a name":           func(h *HFJobs) { h.Image = "--detach" },
		"want the name of an":   func(h *HFJobs) { h.Secrets = []string{"HF_TOKEN=hf_value"} },
		"want SOURCE:/PATH":     func(h *HFJobs) { h.Volumes = []string{"hf://o/m"} },
		"output out: the mach":  func(h *HFJobs) { h.Outputs = []string{"out"} },
		"input in: the machine": func(h *HFJobs) { h.Inputs = []string{"in"} },
	} {
		bad := h
		change(&bad)
		_, err := bad.Script()
		if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hf_value") {
			t.Errorf("a secret is in the error: %v", err)
		}
	}
}

func TestSkyPilot(t *testing.T) {
	s := SkyPilot{Job: remote("it's\n'"), Setup: "pip\ninstall", Infra: "aws", Spot: true, Secrets: []string{"HF_TOKEN"}}
	manifest, err := s.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, manifest)
	if len(all) != 3 || len(all[0]) != 1 || all[0]["name"] != "x" {
		t.Fatalf("%v", all)
	}
	run, log := cluster(t)
	for i, command := range [][]string{s.Part(), s.Finish()} {
		task := all[i+1]
		for _, c := range []struct{ got, want any }{
			{at(t, task, "num_nodes"), []int{3, 1}[i]},
			{at(t, task, "resources"), map[string]any{"infra": "aws", "cpus": "4+", "memory": "5+", "use_spot": true,
				"job_recovery": map[string]any{"max_restarts_on_errors": 2}}},
			{at(t, task, "secrets"), map[string]any{"HF_TOKEN": nil}},
			{at(t, task, "setup"), "pip\ninstall"},
		} {
			if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
				t.Errorf("%v, want %v\n%s", c.got, c.want, manifest)
			}
		}
		if _, code := run(at(t, task, "run").(string)); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if got := strings.Split(kept(t, log, "ran"), "\x00"); !slices.Equal(got, append(command[1:], "")) {
			t.Errorf("the command got %q, want %q", got, command)
		}
	}
	s.Setup = ""
	if _, err := s.Manifest(); !errors.Is(err, fault.Usage) {
		t.Error(err)
	}
}

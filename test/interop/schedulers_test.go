//go:build unix

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"ggforge/test/buckettest"
)

// hostileWords are arguments that a scheduler might take for something else.
var hostileWords = []string{"-e", "--token", "it's", "a b", "$HOME", "$(X)", "a\nb", "\"", "\\", "é", "--detach", "{}"}

// TestAWSBatch runs the script of AWS Batch with the real AWS CLI, which compares what it gets with the model of the
// service, against a server that records the requests.
func TestAWSBatch(t *testing.T) {
	if _, err := exec.LookPath("aws"); err != nil || bin == "" {
		t.Skip("needs the AWS CLI: run make schedulers")
	}
	var mu sync.Mutex
	var got []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		err := json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, body)
		n := len(got)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jobDefinitionName": "n", "jobDefinitionArn": "arn:aws:batch:d:1", "revision": 1, "jobName": "n",
			"jobId": "id-%d"}`, n)
	}))
	defer server.Close()
	run := func(script string) (string, string, int) {
		cmd := exec.Command("sh")
		cmd.Stdin = strings.NewReader(script)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+server.URL, "AWS_ACCESS_KEY_ID=a",
			"AWS_SECRET_ACCESS_KEY=b", "AWS_DEFAULT_REGION=us-east-1", "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1")
		return outcome(t, cmd)
	}
	script := printed(t, slices.Concat([]string{"aws-batch", "--parts", "16", "--cpus", "4", "--mem", "8G", "--queue", "q",
		"--image", "i", "--role", "arn:aws:iam::1:role/r", "--execution-role", "arn:aws:iam::1:role/e", "--secret",
		"HF_TOKEN=arn:aws:secretsmanager:us-east-1:1:secret:s", "--fargate", "--efs", "fs-1", "--time", "4h", "--",
		"ggquant", "--", "hf://o/m", "s3://bucket/k.gguf", "Q4_K_M"})...)
	out, errs, code := run(script)
	if code != 0 || out != "id-2 id-3\n" || len(got) != 3 {
		t.Fatalf("exit code %d, %q, %d requests\n%s%s", code, out, len(got), errs, script)
	}
	command := got[1]["containerOverrides"].(map[string]any)["command"]
	if want := "[ggquant --part auto/16 --resume -- hf://o/m s3://bucket/k.gguf Q4_K_M]"; fmt.Sprint(command) != want {
		t.Errorf("the command of parts is %v, want %s", command, want)
	}
	if fmt.Sprint(got[2]["dependsOn"]) != "[map[jobId:id-2]]" {
		t.Errorf("the last job depends on %v", got[2]["dependsOn"])
	}
	for _, wrong := range [][2]string{{`"size":`, `"sizes":`}, {`"EXIT"`, `7`}, {`"attempts":10`, `"attempts":"10"`},
		{`"type":"container"`, `"kind":"container"`}, {`"fileSystemId"`, `"filesystem"`}} {
		bad := strings.Replace(script, wrong[0], wrong[1], 1)
		if _, _, code := run(bad); code == 0 || bad == script {
			t.Errorf("%s instead of %s is accepted", wrong[1], wrong[0])
		}
	}
}

// TestHFJobs passes each command line of the script to the real CLI of the hub, whose calls of the hub are recorded.
func TestHFJobs(t *testing.T) {
	if root == "" || bin == "" {
		t.Skip("needs ORACLE_ROOT with huggingface_hub: run make schedulers")
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "tmp"), "ggforge-hf-")
	must(t, err)
	defer os.RemoveAll(dir)
	program, err := os.ReadFile("schedulers/hf.py")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "hf.py"), program, 0o666))
	must(t, os.WriteFile(filepath.Join(dir, "hf"), fmt.Appendf(nil,
		"#!/bin/sh\nexec chroot '%s' python3 '/tmp/%s/hf.py' \"$@\"\n", root, filepath.Base(dir)), 0o777))
	script := printed(t, slices.Concat([]string{"hf-jobs", "--parts", "2", "--image", "registry.example/ggforge:1",
		"--flavor", "cpu-upgrade", "--namespace", "n", "--secret", "HF_TOKEN", "--secret", "AWS_SECRET_ACCESS_KEY", "--volume",
		"hf://o/m:/model", "--time", "4h", "--", "ggquant", "--tensor-type", "x=q8_0", "/model", "s3://bucket/k.gguf",
		"Q4_K_M"})...)
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HF_TOKEN=hf_t", "AWS_SECRET_ACCESS_KEY=s s",
		"HF_HUB_DISABLE_UPDATE_CHECK=1", "HF_HUB_OFFLINE=1")
	out, errs, code := outcome(t, cmd)
	var calls []map[string]any
	for line := range strings.Lines(errs + out) {
		var one map[string]any
		if strings.HasPrefix(line, `{"call"`) && json.Unmarshal([]byte(line), &one) == nil {
			calls = append(calls, one)
		}
	}
	if code != 0 || len(calls) != 6 {
		t.Fatalf("exit code %d, %d calls, want 6\n%s%s\n%s", code, len(calls), errs, out, script)
	}
	secrets := "map[AWS_SECRET_ACCESS_KEY:s s HF_TOKEN:hf_t]"
	for i, want := range map[int]map[string]string{
		0: {"call": "run", "image": "registry.example/ggforge:1", "flavor": "cpu-upgrade", "timeout": "14400s",
			"namespace": "n", "env": "map[GGFORGE_PART:1 GGFORGE_PARTS:2]", "secrets": secrets,
			"command": "[ggquant --part auto/2 --resume --tensor-type x=q8_0 /model s3://bucket/k.gguf Q4_K_M]"},
		1: {"call": "run", "env": "map[GGFORGE_PART:2 GGFORGE_PARTS:2]"},
		2: {"call": "wait", "args": "[[0123456789abcdef01234567]]", "namespace": "n"},
		4: {"call": "run", "env": "map[]", "secrets": secrets,
			"command": "[ggquant --finish --tensor-type x=q8_0 /model s3://bucket/k.gguf Q4_K_M]"},
	} {
		for name, value := range want {
			if got := fmt.Sprint(calls[i][name]); got != value {
				t.Errorf("call %d: %s is %s, want %s", i, name, got, value)
			}
		}
	}
	if strings.Contains(script, "hf_t") {
		t.Error("the script has a secret")
	}
}

// TestSkyPilot compares tasks with SkyPilot's schemas.
func TestSkyPilot(t *testing.T) {
	folder := os.Getenv("SKYPILOT")
	if folder == "" || bin == "" {
		t.Skip("needs a checkout of SkyPilot: run make schedulers SKYPILOT=FOLDER")
	}
	valid := func(manifest string) (string, bool) {
		path := filepath.Join(t.TempDir(), "job.yaml")
		must(t, os.WriteFile(path, []byte(manifest), 0o666))
		out, errs, code := outcome(t, exec.Command("python3", "schedulers/skypilot.py", folder, path))
		return out + errs, code == 0
	}
	var manifest string
	for _, flags := range [][]string{{"--image", "i"}, {"--setup", "a\nb", "--infra", "aws/us-east-1", "--spot", "--cpus",
		"8", "--mem", "16G", "--secret", "HF_TOKEN", "--retries", "3"}} {
		manifest = printed(t, slices.Concat([]string{"skypilot", "--parts", "16"}, flags, []string{"--", "ggquant", "hf://o/m",
			"s3://bucket/k.gguf", "Q4_K_M"})...)
		if errs, ok := valid(manifest); !ok {
			t.Errorf("%s\n%s", errs, manifest)
		}
	}
	for _, wrong := range [][2]string{{"num_nodes:", "nodes:"}, {"job_recovery:", "recovery:"}, {"cpus: ", "cpu: "},
		{"num_nodes: 16", `num_nodes: "16"`}, {"use_spot: true", "use_spot: 1"}} {
		bad := strings.Replace(manifest, wrong[0], wrong[1], 1)
		if _, ok := valid(bad); ok || bad == manifest {
			t.Errorf("%s instead of %s is accepted", wrong[1], wrong[0])
		}
	}
}

// simulated is how a scheduler runs the jobs that ggtool submit prints.
type simulated struct {
	submit []string // verb and flags
	// commands returns the commands of the job, as words or, if it is one word, for sh.
	commands func(t *testing.T, job string) (part, finish []string)
	// env returns the variables of a task, whose number counts from 0.
	env func(task, tasks int) []string
}

// simulatedParts is the number of parts of a simulated job.
const simulatedParts = 5

// TestSimulated does what a scheduler does with the jobs that ggtool submit prints: it starts every task as a process with
// the scheduler's variables, in random order, kills processes at random moments and starts them again, and then runs the
// job that finishes. Checkpoint and output are objects of a server in this process; the output has to be that of one process.
func TestSimulated(t *testing.T) {
	if bin == "" {
		t.Skip("needs the commands: run make schedulers")
	}
	gollama, err := filepath.Abs("../testdata/gollama")
	must(t, err)
	alone := filepath.Join(t.TempDir(), "x.gguf")
	if _, errs, code := outcome(t, exec.Command(filepath.Join(bin, "ggquant"), gollama, alone, "Q4_K_M")); code != 0 {
		t.Fatal(errs)
	}
	want, err := os.ReadFile(alone)
	must(t, err)
	for name, s := range simulations {
		t.Run(name, func(t *testing.T) {
			store := buckettest.Serve(t, gollama, "models/gollama/")
			store.Aged = true // no process waits for the lease of one that was killed
			job := printed(t, slices.Concat([]string{name}, s.submit, []string{"--parts",
				strconv.Itoa(simulatedParts), "--", "ggquant", "s3://models/gollama", "s3://out/x.gguf", "Q4_K_M"})...)
			part, finish := s.commands(t, job)
			start := func(words []string, env []string) *exec.Cmd {
				if len(words) == 1 {
					words = []string{"sh", "-c", "exec " + words[0]}
				}
				cmd := exec.Command(words[0], words[1:]...)
				if words[0] == "ggquant" {
					cmd.Path, cmd.Err = filepath.Join(bin, "ggquant"), nil
				}
				cmd.Env = append(os.Environ(), append(env, "GOMAXPROCS=1", "PATH="+bin+":"+os.Getenv("PATH"))...)
				return cmd
			}
			if _, errs, code := outcome(t, start(finish, nil)); code != 7 {
				t.Errorf("the job that finishes, before the parts: exit code %d, want 7\n%s", code, errs)
			}
			random := rand.New(rand.NewPCG(17, uint64(len(name))))
			todo, kills := random.Perm(simulatedParts), 0
			for len(todo) > 0 {
				k := todo[0]
				todo = todo[1:]
				cmd := start(part, s.env(k, simulatedParts))
				var errs bytes.Buffer
				cmd.Stderr = &errs
				must(t, cmd.Start())
				var timer *time.Timer
				if kills < 10 && random.IntN(3) > 0 {
					after := time.Duration(random.IntN(60)) * time.Millisecond
					timer = time.AfterFunc(after, func() { cmd.Process.Kill() })
				}
				err := cmd.Wait()
				if timer != nil {
					timer.Stop()
				}
				var failed *exec.ExitError
				switch {
				case errors.As(err, &failed) && failed.ExitCode() == -1:
					kills++
					todo = slices.Insert(todo, random.IntN(len(todo)+1), k)
				case err != nil:
					t.Fatalf("part %d: %v\n%s", k, err, errs.String())
				}
			}
			if _, errs, code := outcome(t, start(finish, nil)); code != 0 {
				t.Fatalf("exit code %d\n%s", code, errs)
			}
			if !bytes.Equal(store.Get("out/x.gguf"), want) {
				t.Errorf("the object differs from the file of one process; there are %v", store.Names())
			}
			t.Logf("%d parts, %d kills", simulatedParts, kills)
		})
	}
}

var simulations = map[string]simulated{
	"k8s":      {[]string{"--image", "i"}, jobCommands, indexed},
	"kueue":    {[]string{"--image", "i", "--queue", "q"}, jobCommands, indexed},
	"argo":     {[]string{"--image", "i"}, argoCommands, plain},
	"skypilot": {[]string{"--image", "i"}, skyCommands, ranked},
	"aws-batch": {[]string{"--image", "i", "--queue", "q", "--cpus", "1", "--mem", "1G"}, awsCommands,
		func(task, tasks int) []string {
			return []string{fmt.Sprint("AWS_BATCH_JOB_ARRAY_INDEX=", task), fmt.Sprint("AWS_BATCH_JOB_ARRAY_SIZE=", tasks)}
		}},
	"hf-jobs": {[]string{"--image", "i"}, hfCommands, plain},
}

func indexed(task, _ int) []string { return []string{fmt.Sprint("JOB_COMPLETION_INDEX=", task)} }

func plain(task, tasks int) []string {
	return []string{fmt.Sprint("GGFORGE_PART=", task+1), fmt.Sprint("GGFORGE_PARTS=", tasks)}
}

func ranked(task, tasks int) []string {
	return []string{fmt.Sprint("SKYPILOT_NODE_RANK=", task), fmt.Sprint("SKYPILOT_NUM_NODES=", tasks)}
}

// yamlDocuments reads the documents of a manifest into values of type T.
func yamlDocuments[T any](t *testing.T, manifest string) (all []T) {
	for d := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// podCommand is the command of a container. Kubernetes takes $$ for $.
type podCommand struct {
	Command []string
	Env     []struct{ Name, Value string }
}

func (c podCommand) words() (words []string) {
	for _, w := range c.Command {
		words = append(words, strings.ReplaceAll(w, "$$", "$"))
	}
	return words
}

func jobCommands(t *testing.T, job string) (part, finish []string) {
	all := yamlDocuments[struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []podCommand }
			}
		}
	}](t, job)
	return all[0].Spec.Template.Spec.Containers[0].words(), all[1].Spec.Template.Spec.Containers[0].words()
}

func argoCommands(t *testing.T, job string) (part, finish []string) {
	all := yamlDocuments[struct {
		Spec struct {
			Templates []struct{ Container podCommand }
		}
	}](t, job)
	c := all[0].Spec.Templates[1].Container
	if fmt.Sprint(c.Env) != fmt.Sprintf("[{GGFORGE_PART {{inputs.parameters.part}}} {GGFORGE_PARTS %d}]", simulatedParts) {
		t.Errorf("variables %v", c.Env)
	}
	return c.words(), all[0].Spec.Templates[2].Container.words()
}

func skyCommands(t *testing.T, job string) (part, finish []string) {
	all := yamlDocuments[struct{ Run string }](t, job)
	return []string{all[1].Run}, []string{all[2].Run}
}

// recorded runs a script with a program that records its arguments and prints answer; it returns the arguments of each
// call.
func recorded(t *testing.T, script, program, answer string) (calls [][]string) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+
		`for a; do printf '%s\0' "$a"; done >"`+dir+`/call-$(printf %03d "$(ls "`+dir+`" | wc -l)")"; `+answer+"\n"), 0o777))
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if _, errs, code := outcome(t, cmd); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	names, err := filepath.Glob(filepath.Join(dir, "call-*"))
	must(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		must(t, err)
		words := strings.Split(string(data), "\x00")
		calls = append(calls, words[:len(words)-1])
	}
	return calls
}

func awsCommands(t *testing.T, job string) (part, finish []string) {
	var commands [][]string
	for _, call := range recorded(t, job, "aws", "echo id")[1:] {
		var input struct{ ContainerOverrides podCommand }
		must(t, json.Unmarshal([]byte(call[slices.Index(call, "--cli-input-json")+1]), &input))
		commands = append(commands, input.ContainerOverrides.Command)
	}
	return commands[0], commands[1]
}

func hfCommands(t *testing.T, job string) (part, finish []string) {
	calls := recorded(t, job, "hf", `echo "id: 0123456789abcdef01234567"`)
	after := func(call []string) []string { return call[slices.Index(call, "--")+2:] }
	return after(calls[0]), after(calls[len(calls)-1])
}

// TestParallel runs parts under the real GNU parallel, which runs those that were killed again.
func TestParallel(t *testing.T) {
	if _, err := exec.LookPath("parallel"); err != nil || bin == "" {
		t.Skip("needs GNU parallel: run make schedulers")
	}
	dir := t.TempDir()
	run := func(stdin string, argv ...string) {
		if argv[0] == "ggquant" {
			argv[0] = filepath.Join(bin, argv[0])
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
		if _, errs, code := outcome(t, cmd); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", argv, code, errs)
		}
	}
	gollama, err := filepath.Abs("../testdata/gollama")
	must(t, err)
	run("", "ggquant", gollama, "one.gguf", "Q4_K_M")
	run("1\n2\n3\n4\n5\n", "parallel", "-j", "2", "-N0", "--retries", "5",
		`[ -e tried-$PARALLEL_SEQ ] || { touch tried-$PARALLEL_SEQ; kill -9 $$; }; ggquant --part auto/5 `+gollama+
			` all.gguf Q4_K_M`)
	run("", "ggquant", "--finish", gollama, "all.gguf", "Q4_K_M")
	run("", "cmp", "one.gguf", "all.gguf")
	if tried, _ := filepath.Glob(filepath.Join(dir, "tried-*")); len(tried) != 5 {
		t.Errorf("%d parts were killed, want 5", len(tried))
	}
}

// TestSchedulersQuote checks that arguments reach commands unchanged through the scripts that shells run.
func TestSchedulersQuote(t *testing.T) {
	if bin == "" {
		t.Skip("needs the commands: run make schedulers")
	}
	for _, name := range slices.Sorted(maps.Keys(simulations)) {
		s := simulations[name]
		job := printed(t, slices.Concat([]string{name}, s.submit, []string{"--parts", strconv.Itoa(simulatedParts), "--",
			"ggquant", "--quiet", "--out-dir", "s3://bucket/" + strings.Join(hostileWords, "/") + "/", "hf://o/m", "Q8_0"})...)
		_, finish := s.commands(t, job)
		if len(finish) == 1 { // for sh
			out, _, code := outcome(t, exec.Command("sh", "-c",
				"ggquant() { for a; do printf '%s\\0' \"$a\"; done; }\n"+finish[0]))
			if code != 0 {
				t.Fatalf("%s: exit code %d", name, code)
			}
			finish = append([]string{"ggquant"}, strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")...)
		}
		want := []string{"ggquant", "--finish", "--quiet", "--out-dir", "s3://bucket/" + strings.Join(hostileWords, "/") + "/",
			"hf://o/m", "Q8_0"}
		if !slices.Equal(finish, want) {
			t.Errorf("%s: %q, want %q", name, finish, want)
		}
	}
}

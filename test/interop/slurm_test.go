//go:build linux

package interop

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggforge/test/hftest"
)

// slurmParts is the number of parts of a job.
const slurmParts = 16

// TestSlurm runs jobs of ggtool submit on the Slurm that test/interop/slurm/with-cluster has started:
// of each job, three tasks are killed in different ways and queued again, and outputs must be those of one process.
func TestSlurm(t *testing.T) {
	if os.Getenv("SLURM_CONF") == "" || bin == "" {
		t.Skip("needs a Slurm of its own: run make slurm")
	}
	gollama, err := filepath.Abs("../testdata/gollama")
	must(t, err)
	dir := t.TempDir()
	large := largeCheckpoint(t, dir)
	for _, c := range []struct {
		name    string
		command []string // OUT is replaced by the folder of the outputs, PARTS by that of the parts
	}{
		{"gollama converted", []string{"ggconv", "--progress", "none", gollama, "OUT/x.gguf"}},
		{"gollama quantized", []string{"ggquant", "--progress", "none", "--out-dir", "OUT", gollama, "Q8_0",
			"Q4_K_M", "IQ3_S"}},
		{"gollama in part files", []string{"ggquant", "--progress", "none", "--verify", "--part-files", "PARTS",
			gollama, "OUT/x.gguf", "IQ4_XS"}},
		{"gollama released", strings.Fields("ggtool release --quiet --progress none --layout folders --source " + gollama +
			" --output OUT --type Q8_0 --type Q6_K --type Q5_K_M --type Q5_K_S --type Q5_0 --type Q4_K_M --type Q4_K_S " +
			"--type Q4_0 --type IQ4_XS --type Q3_K_M --type Q2_K --type IQ3_S")},
		{"large converted", []string{"ggconv", "--progress", "none", large, "OUT/x.gguf"}},
		{"large quantized", []string{"ggquant", "--progress", "none", large, "OUT/x.gguf", "Q4_K_M"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone, together, parts := filepath.Join(dir, "alone"), filepath.Join(dir, "together"),
				filepath.Join(dir, "parts")
			for _, d := range []string{alone, together, parts} {
				must(t, os.Mkdir(d, 0o777))
				defer os.RemoveAll(d)
			}
			words := func(out string) (list []string) {
				for _, w := range c.command {
					list = append(list, strings.NewReplacer("OUT", out, "PARTS", parts).Replace(w))
				}
				return list
			}
			single := words(alone)
			if i := slices.Index(single, "--part-files"); i > 0 {
				single = slices.Delete(single, i, i+2)
			}
			begin := time.Now()
			if _, errs, code := outcome(t, exec.Command(filepath.Join(bin, single[0]), single[1:]...)); code != 0 {
				t.Fatalf("%q: exit code %d\n%s", single, code, errs)
			}
			took := time.Since(begin)
			begin = time.Now()
			j := submitSlurm(t, together, words(together))
			j.disturb()
			j.wait()
			inParts := time.Since(begin)
			want, got := hashes(t, alone), hashes(t, together)
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant, as of one process,\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			t.Logf("%d parts, 3 killed and queued again: the same %d files; one process %.1f s, all of the jobs %.1f s\n%s",
				slurmParts, len(want), took.Seconds(), inParts.Seconds(), strings.Join(want, "\n"))
		})
	}
}

// largeCheckpoint makes a checkpoint of about 1 GB in BF16.
func largeCheckpoint(t *testing.T, dir string) string {
	s := *hftest.Lookup("llama")
	s.Name = "large"
	path, err := s.Write(dir, hftest.Variant{Seed: 1, DType: "BF16", Ring: true, Set: `{"torch_dtype": "bfloat16", "vocab_size": 32000, "hidden_size": 2048,
		"intermediate_size": 5632, "num_hidden_layers": 8, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 64}`})
	must(t, err)
	return path
}

// hashes lists the files of a folder and its folders, without the state of a release, with their sizes and SHA-256.
func hashes(t *testing.T, dir string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.Name() == ".ggtool-release" {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		n, err := io.Copy(h, f)
		name, _ := filepath.Rel(dir, path)
		list = append(list, fmt.Sprintf("%x %d %s", h.Sum(nil), n, name))
		return err
	}))
	return list
}

// slurmJob is an array of parts and the job that finishes.
type slurmJob struct {
	t             *testing.T
	program, logs string
	parts, finish string // numbers
}

// slurm runs one of Slurm's commands and returns its output.
func slurm(t *testing.T, argv ...string) string {
	t.Helper()
	out, errs, code := outcome(t, exec.Command(argv[0], argv[1:]...))
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s", argv, code, errs)
	}
	return strings.TrimSpace(out)
}

// submitSlurm submits a command in parts, with one CPU for each.
func submitSlurm(t *testing.T, dir string, command []string) *slurmJob {
	t.Helper()
	j := &slurmJob{t: t, program: command[0], logs: t.TempDir()}
	script, errs, code := outcome(t, exec.Command(filepath.Join(bin, "ggtool"),
		append([]string{"submit", "slurm", "--parts", strconv.Itoa(slurmParts), "--cpus", "1", "--"}, command...)...))
	if code != 0 {
		t.Fatalf("submit: exit code %d\n%s", code, errs)
	}
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(script)
	cmd.Dir = j.logs
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, errs, code := outcome(t, cmd)
	ids := strings.Fields(out)
	if code != 0 || len(ids) != 2 {
		t.Fatalf("sbatch: exit code %d, %q\n%s", code, out, errs)
	}
	j.parts, j.finish = ids[0], ids[1]
	return j
}

// disturb kills three tasks while they run: the process, as the kernel does when memory is short; the whole
// task, as a user does who then queues it again; and the task as Slurm does when a job is preempted, with a SIGTERM
// first. Each task is held when it is found, so that it cannot end before.
func (j *slurmJob) disturb() {
	j.t.Helper()
	done := map[string]bool{}
	for deadline := time.Now().Add(5 * time.Minute); len(done) < 3; {
		if time.Now().After(deadline) {
			j.t.Fatalf("only %d tasks were found while they ran", len(done))
		}
		pid, task := j.running(done)
		if pid == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		if syscall.Kill(pid, syscall.SIGSTOP) != nil {
			continue // it has ended
		}
		// It is killed with some of its blocks written and some not: let it run for a moment.
		syscall.Kill(pid, syscall.SIGCONT)
		time.Sleep(time.Duration(len(done)) * 5 * time.Millisecond)
		if syscall.Kill(pid, syscall.SIGSTOP) != nil {
			continue
		}
		id := j.parts + "_" + task
		switch len(done) {
		case 0:
			syscall.Kill(pid, syscall.SIGKILL)
		case 1:
			slurm(j.t, "scancel", "--signal=KILL", id)
			j.until("the killed task ends", func() bool {
				return slurm(j.t, "squeue", "-h", "-t", "all", "-j", id, "-o",
					"%T") == "CANCELLED"
			})
			slurm(j.t, "scontrol", "requeue", id)
		case 2:
			slurm(j.t, "scontrol", "requeue", id)
		}
		done[task] = true
	}
}

// running returns a process of a task that is not in done, and the number of the task; 0 for none.
func (j *slurmJob) running(done map[string]bool) (pid int, task string) {
	entries, err := os.ReadDir("/proc")
	must(j.t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if name, _ := os.ReadFile(filepath.Join("/proc", e.Name(),
			"comm")); strings.TrimSpace(string(name)) != j.program {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		vars := strings.Split(string(environ), "\x00")
		if !slices.Contains(vars, "SLURM_ARRAY_JOB_ID="+j.parts) ||
			!slices.Contains(vars, "SLURM_CONF="+os.Getenv("SLURM_CONF")) {
			continue
		}
		for _, v := range vars {
			if task, ok := strings.CutPrefix(v, "SLURM_ARRAY_TASK_ID="); ok && !done[task] {
				return pid, task
			}
		}
	}
	return 0, ""
}

// until waits for a condition, which what names in the message of a timeout.
func (j *slurmJob) until(what string, met func() bool) {
	j.t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !met(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			j.t.Fatalf("waited for 10 minutes: %s\n%s", what, j.log())
		}
	}
}

// pause is how long a task that was queued again has to wait, instead of Slurm's two minutes: the
// node refuses to start it in the second in which it was stopped.
const pause = 3 * time.Second

// wait waits until the finishing job has succeeded.
func (j *slurmJob) wait() {
	j.t.Helper()
	state := ""
	since := map[string]time.Time{} // when a job that waits for its time was first seen
	j.until("the job that finishes ends", func() bool {
		for line := range strings.Lines(slurm(j.t, "squeue", "-h", "-r", "-t", "all", "-j", j.parts+","+j.finish, "-o",
			"%i|%T|%r")) {
			f := strings.Split(strings.TrimSpace(line), "|")
			if f[1] == "PENDING" && f[2] == "BeginTime" {
				if since[f[0]].IsZero() {
					since[f[0]] = time.Now()
				}
				if time.Since(since[f[0]]) > pause {
					slurm(j.t, "scontrol", "update", "jobid="+f[0], "StartTime=now")
				}
			}
			if f[0] == j.finish {
				state = f[1]
			}
		}
		return slices.Contains([]string{"COMPLETED", "FAILED", "CANCELLED"}, state)
	})
	if state != "COMPLETED" {
		j.t.Fatalf("the job that finishes is %s\n%s", state, j.log())
	}
	restarts := 0
	for field := range strings.FieldsSeq(slurm(j.t, "scontrol", "show", "job", j.parts)) {
		if n, ok := strings.CutPrefix(field, "Restarts="); ok && n != "0" {
			restarts++
		}
	}
	if restarts != 3 {
		j.t.Errorf("%d tasks ran again, want 3\n%s", restarts, j.log())
	}
}

// log returns the output of the jobs.
func (j *slurmJob) log() string {
	files, _ := filepath.Glob(filepath.Join(j.logs, "slurm-*.out"))
	var b strings.Builder
	for _, f := range files {
		data, _ := os.ReadFile(f)
		fmt.Fprintf(&b, "%s:\n%s", filepath.Base(f), data)
	}
	return cmp.Or(b.String(), "there are no logs")
}

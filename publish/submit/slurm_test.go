package submit

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakes are shell scripts that replace Slurm's programs and ggquant. They record in the folder $LOG their arguments,
// each ended by a NUL, and the standard input of sbatch. ggquant runs the script in $RUN.
var fakes = map[string]string{
	"sbatch": `cat >"$LOG/script-$(ls "$LOG" | grep -c script)"
for a; do printf '%s\0' "$a"; done >"$LOG/sbatch-$(ls "$LOG" | grep -c sbatch)"
echo 7`,
	"squeue":   `echo "${STATE-RUNNING}"`,
	"scontrol": `echo "$*" >>"$LOG/scontrol"`,
	"ggquant":  `for a; do printf '%s\0' "$a"; done >"$LOG/ran"; eval "${RUN:-}"`,
}

// cluster returns a function that runs a script with the fakes, and the folder of their records.
func cluster(t testing.TB) (run func(script string, env ...string) (out string, code int), log string) {
	if runtime.GOOS == "windows" {
		t.Skip("clusters run sh")
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	bin, log := t.TempDir(), t.TempDir()
	all := maps.Clone(fakes)
	maps.Copy(all, clis)
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!"+sh+"\n"+text+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return func(script string, env ...string) (string, int) {
		cmd := exec.Command(sh)
		cmd.Stdin = strings.NewReader(script)
		cmd.Env = append([]string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "LOG=" + log,
			"SLURM_JOB_ID=9"}, env...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if errs.Len() > 0 {
			t.Logf("%s", errs.Bytes())
		}
		return string(out), cmd.ProcessState.ExitCode()
	}, log
}

// kept returns the record that a fake has written, and removes it.
func kept(t testing.TB, log, name string) string {
	data, err := os.ReadFile(filepath.Join(log, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(log, name)); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// FuzzScript runs scripts with arbitrary strings through a shell: sbatch and the command must get these strings.
func FuzzScript(f *testing.F) {
	for _, s := range []string{"", " ", "it's", "'\\''", "a\nb", "END", "a\nEND\nb", "\nEND_\nEND\n", "\r\n", "\r",
		"a\nEND\x80b", "$HOME `id` $(id)", "\\", "\"", "*", "~", "!", "\xff\x80", "#", "-n", "\n\n", "end\n"} {
		f.Add(s, "--x="+s, s+"'")
	}
	run, log := cluster(f)
	f.Fuzz(func(t *testing.T, arg, option, partition string) {
		s := Slurm{Options: []string{option}, Partition: partition,
			Job: Job{Command: []string{"ggquant", "first", arg, option + arg}, Parts: 3}}
		script, err := s.Script()
		if err != nil {
			t.Skip() // a NUL, or a flag that Script adds
		}
		out, code := run(script)
		if code != 0 || out != "7 7\n" {
			t.Fatalf("exit code %d, %q\n%s", code, out, script)
		}
		for i, kind := range []string{"parts", "finish"} {
			got := strings.Split(kept(t, log, fmt.Sprint("sbatch-", i)), "\x00")
			want := []string{"--parsable", "--array=1-3", "--job-name=ggquant-" + kind, "--ntasks=1", "--requeue",
				"--open-mode=append", "--partition=" + partition, option, ""}
			command := append(s.Part()[1:], "")
			if i == 1 {
				want[1], command = "--dependency=afterany:7", append(s.Finish()[1:], "")
			}
			if partition == "" {
				want = slices.Delete(want, 6, 7)
			}
			if !slices.Equal(got, want) {
				t.Errorf("sbatch got %q, want %q", got, want)
			}
			batch := kept(t, log, fmt.Sprint("script-", i))
			if strings.Contains(batch, "\r\n") {
				t.Errorf("sbatch refuses the line ends of %q", batch)
			}
			if _, code := run(batch); code != 0 {
				t.Errorf("exit code %d\n%s", code, batch)
			}
			if got := strings.Split(kept(t, log, "ran"), "\x00"); !slices.Equal(got, command) {
				t.Errorf("the command got %q, want %q\n%s", got, command, batch)
			}
		}
	})
}

// TestBatch runs the script of a task with commands that end in different ways.
func TestBatch(t *testing.T) {
	run, log := cluster(t)
	again := "requeue 9\n"
	for _, c := range []struct {
		run, want string
		code      int
		env       []string
		task      bool
	}{
		{run: "exit 0", code: 0},
		{run: "exit 1", code: 1, want: again},
		{run: "exit 2", code: 2},
		{run: "exit 5", code: 5},
		{run: "exit 130", code: 130, want: again},
		{run: "kill -KILL $$", code: 137, want: again},
		{run: "kill -KILL $$", code: 137, env: []string{"SLURM_RESTART_COUNT=2"}, want: again},
		{run: "kill -KILL $$", code: 137, env: []string{"SLURM_RESTART_COUNT=3"}},
		{run: "exit 7", code: 7, want: again, env: []string{"SLURM_RESTART_COUNT=3"}}, // parts are still in the queue
		{run: "exit 7", code: 7, env: []string{"STATE="}},
		{run: "exit 1", code: 1, env: []string{"SLURM_ARRAY_TASK_ID=16", "SLURM_ARRAY_JOB_ID=9"}, task: true,
			want: "requeue 9_16\n"},
		// of another job
		{run: "exit 1", code: 1, env: []string{"SLURM_ARRAY_TASK_ID=16", "SLURM_ARRAY_JOB_ID=3"}, want: again},
		{run: "exit 130", code: 130,
			env: []string{"STATE=COMPLETING"}}, // somebody has cancelled it
		// the shell gets SIGTERM, passes it on, and has the command's own exit code
		{run: `trap 'exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.01; done`, code: 3},
		{run: `trap 'sleep 0.05; exit 130' TERM; kill -TERM $PPID; while :; do sleep 0.01; done`, code: 130,
			want: again},
		{run: `test "$GOMAXPROCS" = 12`, code: 0, env: []string{"SLURM_CPUS_PER_TASK=12"}},
	} {
		parts := "parts=5\n"
		if c.task {
			parts = "parts=\n"
		}
		_, code := run(parts+batch([]string{"ggquant", "x"}, 3), append(c.env, "RUN="+c.run)...)
		got, err := os.ReadFile(filepath.Join(log, "scontrol"))
		if err == nil {
			kept(t, log, "scontrol")
		}
		if code != c.code || string(got) != c.want {
			t.Errorf("%s, %q: exit code %d, want %d; scontrol %q, want %q", c.run, c.env, code, c.code, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	s := Slurm{Time: 90 * time.Second, Partition: "p", Account: "a", Job: Job{
		Name: "N", Command: []string{"ggconv", "in", "out"}, Parts: 40, AtOnce: 5, CPUs: 4, Memory: 3<<30 + 1,
		Grace: 1500 * time.Millisecond,
	}}
	script, err := s.Script()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--array=1-40%5 ", "'--job-name=n-parts'", "'--job-name=n-finish'", "'--signal=B:TERM@2'",
		"'--cpus-per-task=4'", "'--mem=3073M'", "'--time=2'",
		"'--partition=p'", "'--account=a'",
	} {
		if n := strings.Count(script, want); n != 2 &&
			!strings.Contains("--array=1-40%5 '--job-name=n-parts''--job-name=n-finish'", want) || n == 0 {
			t.Errorf("%s is there %d times\n%s", want, n, script)
		}
	}
}

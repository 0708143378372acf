package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// aloneEnv makes a test binary run its command instead of tests.
const aloneEnv = "GGFORGE_TEST_ALONE"

// Cost is the output and the memory of a command that ran in a process of its own.
type Cost struct {
	Code      int    // its exit code
	Text      string // what it printed, and its error
	Allocated uint64 // bytes in all, freed ones included
	Peak      uint64 // resident bytes of the process at most, 0 where that is not known
}

// Main is TestMain of a package whose tests use Alone; call runs the command.
func Main(m *testing.M, call func(args ...string) (code int, out string, err error)) {
	if os.Getenv(aloneEnv) == "" {
		os.Exit(m.Run())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code, out, err := call(os.Args[1:]...)
	runtime.ReadMemStats(&after)
	cost := Cost{code, fmt.Sprint(out, err), after.TotalAlloc - before.TotalAlloc, peak()}
	if err := json.NewEncoder(os.Stdout).Encode(cost); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// peak returns how much of this process has been resident at most.
func peak() uint64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kB uint64
	fmt.Sscan(rest, &kB)
	return kB << 10
}

// Alone runs the command in a process of its own, so that memory of other tests does not count.
func Alone(t *testing.T, args ...string) (c Cost) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(exe, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), aloneEnv+"=1"), &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		t.Fatalf("%v: %.500s%.2000s", err, out, stderr.Bytes())
	}
	return c
}

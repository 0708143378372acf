package push_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ggforge/publish/push"
	"ggforge/test/hubtest"
)

// TestMain is the process that TestKilled kills: it pushes a folder.
func TestMain(m *testing.M) {
	dir := os.Getenv("PUSH_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	say := func(text string) { fmt.Fprintln(os.Stderr, text) }
	p, err := push.Prepare(dir, "hf://org/name", push.Options{Endpoint: os.Getenv("PUSH_TEST_URL"),
		Token: os.Getenv("HF_TOKEN"), Pause: time.Millisecond, Warn: say, Note: say})
	if err == nil {
		var r *push.Result
		if r, err = p.Run(context.Background()); err == nil {
			fmt.Println(len(r.Files))
		}
	}
	if err != nil {
		say(err.Error())
		os.Exit(1)
	}
}

// TestKilled kills processes that push, at random times: the hub has the folder at the end, and only parts that were on
// their way are sent again.
func TestKilled(t *testing.T) {
	dir, files := release(t)
	w := newWorld(t)
	w.SetFault(func(name string, n int, _ http.ResponseWriter, r *http.Request) bool {
		hubtest.Slow(r, 5*time.Millisecond)
		return false
	})
	var out strings.Builder
	killed := 0
	rnd := rand.New(rand.NewPCG(3, 4))
	for run := 0; ; run++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PUSH_TEST_DIR="+dir, "PUSH_TEST_URL="+w.URL, "HF_TOKEN="+w.Token)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait := time.Duration(20+rnd.IntN(80)) * time.Millisecond
		if run == 20 {
			wait = time.Hour
		}
		timer := time.AfterFunc(wait, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if cmd.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, &out)
		}
		killed++
	}
	t.Logf("killed %d times", killed)
	w.has("main", files)
	if w.Commits("org/name") != 2 {
		t.Errorf("%d commits", w.Commits("org/name"))
	}
	w.again(4 * killed)
	if strings.Contains(out.String(), "secret") || strings.Contains(out.String(), w.Token) {
		t.Errorf("the output has a secret: %s", &out)
	}
}

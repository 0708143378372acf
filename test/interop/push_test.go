package interop

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mockHub is the strict stand-in for the hub in ORACLE_SHARED, which real clients have been tried with.
type mockHub struct {
	t     *testing.T
	url   string
	token string
	said  strings.Builder // what the commands have printed
	kills []float64       // when they were killed, in seconds
}

// pushPart is the size of parts, and of the largest object that is sent at once.
const pushPart = 100_000

// startMockHub starts it.
func startMockHub(t *testing.T, more ...string) *mockHub {
	script := filepath.Join(shared, "oracle", "hubserver.py")
	if _, err := os.Stat(script); err != nil || bin == "" {
		t.Skip("needs oracle/hubserver.py in ORACLE_SHARED: run make interop")
	}
	h := &mockHub{t: t, token: "hf_interopinteropinteropinteropinterop"}
	cmd := exec.Command("python3", append([]string{script, "--dir", t.TempDir(), "--org", "org", "--token", h.token,
		"--part-size", fmt.Sprint(pushPart), "--multipart-from", fmt.Sprint(pushPart)}, more...)...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	var v struct{ Hub string }
	must(t, json.Unmarshal([]byte(line), &v))
	h.url = v.Hub
	return h
}

// ask asks the mock for something of its own.
func (h *mockHub) ask(path string, body any, answer any) {
	h.t.Helper()
	method, data := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		method = http.MethodPost
		data, err = json.Marshal(body)
		must(h.t, err)
	}
	req, err := http.NewRequest(method, h.url+"/_mock/"+path, bytes.NewReader(data))
	must(h.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	must(h.t, err)
	if answer != nil {
		must(h.t, json.Unmarshal(data, answer))
	}
}

// push runs ggtool push until it ends, or kills it after a time that is not 0, and notes when. It returns the exit
// code, -1 if it was killed.
func (h *mockHub) push(kill time.Duration, args ...string) int {
	h.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "ggtool"), append([]string{"push", "--progress", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+h.url, "HF_TOKEN="+h.token)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(h.t, cmd.Start())
	timer := time.AfterFunc(time.Hour, func() {})
	if kill > 0 {
		timer = time.AfterFunc(kill, func() { cmd.Process.Kill() })
	}
	cmd.Wait()
	if cmd.ProcessState.ExitCode() < 0 {
		h.kills = append(h.kills, float64(time.Now().UnixMilli())/1000)
	}
	timer.Stop()
	h.said.Write(out.Bytes())
	for _, secret := range []string{h.token, "X-Amz", "ignature"} {
		if strings.Contains(out.String(), secret) {
			h.t.Errorf("%q is in the output:\n%s", secret, &out)
		}
	}
	code := cmd.ProcessState.ExitCode()
	if code > 0 {
		last := strings.Split(strings.TrimSpace(out.String()), "\n")
		h.t.Logf("exit code %d: %s", code, last[len(last)-1])
	}
	return code
}

// same checks that a repository has exactly the files of a folder, but for what is never published.
func (h *mockHub) same(repo, dir string, others ...string) {
	h.t.Helper()
	want := folderSums(h.t, dir)
	var v struct {
		Files map[string]struct{ SHA256 string }
	}
	h.ask("tree/"+repo, nil, &v)
	got := map[string]string{}
	for name, f := range v.Files {
		if name != ".gitattributes" && !slices.Contains(others, name) {
			got[name] = f.SHA256
		}
	}
	if !maps.Equal(got, want) {
		h.t.Errorf("%s has\n%v\nwant\n%v", repo, got, want)
	}
}

// folderSums returns the sums of the files of a folder but hidden ones.
func folderSums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path != dir && strings.HasPrefix(e.Name(), ".") {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = fileSum(t, path)
		return err
	}))
	return all
}

// report is what the mock has seen.
type hubReport struct {
	Violations []any
	Unused     []any
	Sent       map[string]struct{ Bytes, Requests, Stored int64 }
}

// fair checks that the mock has found nothing wrong, and returns how many parts were stored more than once though their
// answers had come: those that were not on their way when a push was killed.
func (h *mockHub) fair() (again int64, report hubReport) {
	h.t.Helper()
	h.ask("report", nil, &report)
	if len(report.Violations) > 0 {
		h.t.Errorf("violations: %v", report.Violations)
	}
	var log []struct {
		Name, OID string
		Part      int
		Status    int
		T, MS     float64 // when the request began, and how long it took
	}
	h.ask("log", nil, &log)
	seen := map[string]bool{}
	slices.Reverse(log)
	for _, e := range log {
		if e.Name != "part" && e.Name != "put" || e.Status != 200 {
			continue
		}
		key := fmt.Sprint(e.OID, e.Part)
		onItsWay := slices.ContainsFunc(h.kills, func(at float64) bool {
			return at > e.T-0.1 && at < e.T+e.MS/1000+0.1
		})
		if seen[key] && !onItsWay {
			again++
		}
		seen[key] = true
	}
	return again, report
}

// pushed writes a folder like a release: files of random bytes, sums, a card.
func pushed(t *testing.T, seed uint64, scale int) string {
	t.Helper()
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(seed, 1))
	put := func(name string, data []byte) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, data, 0o666))
	}
	var sums strings.Builder
	for _, f := range []struct {
		name string
		size int
	}{{"M-Q4_K_M.gguf", 260_001}, {"M-Q8_0.gguf", 500_000}, {"M-imatrix.gguf", 70_000},
		{"Q2_K/M-Q2_K-00001-of-00002.gguf", 100_000}, {"Q2_K/M-Q2_K-00002-of-00002.gguf", 99_999},
		{"M 1M (old) ä.gguf", 1000}} {
		data := make([]byte, f.size*scale)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		copy(data, "GGUF\x03\x00\x00\x00")
		put(f.name, data)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), f.name)
	}
	put("SHA256SUMS", []byte(sums.String()))
	put("README.md", []byte("---\nbase_model: example/tiny\nbase_model_relation: quantized\nlicense: mit\n---\n"))
	put("M-Q8_0.html", bytes.Repeat([]byte("<!doctype html>"), 100))
	put("empty.txt", nil)
	put(".env", []byte("private"))
	return dir
}

// TestPush pushes folders to the strict stand-in for the hub, with each of its faults: either a push survives, or the
// next one without faults ends well.
func TestPush(t *testing.T) {
	h := startMockHub(t, "--page", "3")
	rule := func(on, do string, more ...any) map[string]any {
		r := map[string]any{"on": on, "do": do}
		for i := 0; i < len(more); i += 2 {
			r[more[i].(string)] = more[i+1]
		}
		return r
	}
	type plan struct {
		name  string
		rules []map[string]any
		code  int  // of the push
		again bool // parts may have to be sent again
	}
	var plans []plan
	add := func(name string, code int, again bool, rules ...map[string]any) {
		plans = append(plans, plan{name, rules, code, again})
	}
	add("no fault", 0, false)
	for _, on := range []string{"info", "create", "validate", "tree", "preupload", "batch", "put", "part", "complete",
		"verify", "commit"} {
		add(on+" 500", 0, false, rule(on, "status", "nth", 1))
		add(on+" 503 early", 0, false, rule(on, "status", "nth", 1, "status", 503, "early", true, "retry_after", 1))
		add(on+" 504 done", 0, on == "put" || on == "part", rule(on, "status", "nth", 1, "status", 504, "at", "after"))
		add(on+" limited", 0, false, rule(on, "ratelimit", "nth", 1, "seconds", 1))
		add(on+" cut before", 0, false, rule(on, "drop", "nth", 1))
		add(on+" cut after", 0, on == "put" || on == "part", rule(on, "drop", "nth", 1, "at", "after"))
		add(on+" slow", 0, false, rule(on, "slow", "nth", 1, "seconds", 1))
		if on != "info" && on != "tree" { // without a body
			add(on+" cut within", 0, false, rule(on, "drop", "nth", 1, "at", "mid"))
		}
		if on != "put" && on != "part" {
			code := 5
			if on == "complete" {
				code = 0 // the store is the hub's for it: a permission that is gone is asked for again
			}
			if on != "complete" {
				add(on+" elsewhere", code, false, rule(on, "redirect", "nth", 1))
			}
			if on != "verify" && on != "create" && on != "validate" && on != "complete" {
				add(on+" nonsense", 3, false, rule(on, "answer", "nth", 1, "body", "<html>"))
			}
		}
		if on != "put" && on != "part" && on != "complete" {
			add(on+" forbidden", 5, false, rule(on, "status", "nth", 1, "status", 403))
		}
	}
	add("retry later", 0, false, rule("preupload", "ratelimit", "nth", 1, "retry_after", 1))
	add("many parts cut", 0, false, rule("part", "drop", "every", 3, "at", "mid"))
	add("rate", 0, false, rule("part", "rate", "bytes", 400_000))
	add("stall", 0, false, rule("part", "stall", "nth", 2, "seconds", 3))
	add("expired", 0, false, rule("part", "expire", "nth", 3), rule("put", "expire", "nth", 1))
	add("all expired", 0, true, rule("part", "expire", "nth", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}))
	add("no tag", 0, true, rule("part", "noetag", "nth", 2))
	add("wrong tag", 0, true, rule("part", "badetag", "nth", 2))
	add("corrupt", 0, true, rule("part", "corrupt", "nth", 2))
	add("conflict", 0, false, rule("commit", "conflict", "nth", 1)) // about somebody-else.txt
	add("conflict of a file", 5, false, rule("commit", "conflict", "nth", 1))
	for what, value := range map[string]any{"chunk": "7", "fewer": nil, "more": nil, "href": "ftp://x/y", "oid": nil,
		"missing": nil} {
		add("twisted "+what, 3, false, rule("batch", "twist", "nth", 1, "what", what, "value", value))
	}
	add("chunk of nothing", 3, false, rule("batch", "twist", "nth", 1, "what", "chunk", "value", "0"))
	for i, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			h.t = t
			dir := pushed(t, uint64(i), 1)
			repo := fmt.Sprintf("org/plan%d", i)
			const other = "somebody-else.txt"
			if p.name == "conflict of a file" {
				must(t, os.WriteFile(filepath.Join(dir, other), []byte("ours"), 0o666))
			}
			if p.rules == nil {
				p.rules = []map[string]any{}
			}
			h.ask("reset", nil, nil)
			h.ask("plan", p.rules, nil)
			code := h.push(0, "--private", dir, "hf://"+repo)
			if code != p.code {
				t.Errorf("exit code %d, want %d", code, p.code)
			}
			again, report := h.fair()
			if len(report.Unused) > 0 {
				t.Errorf("faults that were not met: %v", report.Unused)
			}
			h.ask("plan", []any{}, nil)
			if code != 0 {
				if code := h.push(0, "--private", dir, "hf://"+repo); code != 0 {
					t.Errorf("without faults: exit code %d", code)
				}
				again, _ = h.fair()
			}
			if again > 0 && !p.again && (code == 0 || again > 4) { // an error ends what is on its way
				t.Errorf("%d parts were sent again", again)
			}
			if p.name == "conflict" {
				h.same(repo, dir, other)
			} else {
				h.same(repo, dir)
			}
		})
	}
}

// TestPushKilled kills a push twenty times at random. At the end the hub has the folder, in one commit, and only what
// was on its way was sent again. The hub's own client downloads it.
func TestPushKilled(t *testing.T) {
	h := startMockHub(t)
	dir := pushed(t, 99, 4)
	h.ask("plan", []any{map[string]any{"on": "part", "do": "rate", "bytes": 200_000}}, nil)
	rnd := rand.New(rand.NewPCG(5, 6))
	killed, code := 0, -1
	for code != 0 {
		kill := time.Duration(200+rnd.IntN(700)) * time.Millisecond
		if killed == 20 {
			kill = 0
		}
		if code = h.push(kill, "--private", dir, "hf://org/killed"); code > 0 {
			t.Fatalf("exit code %d:\n%s", code, &h.said)
		}
		if code < 0 {
			killed++
		}
	}
	again, report := h.fair()
	var sent, size int64
	for _, s := range report.Sent {
		sent += s.Bytes
	}
	for name := range folderSums(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && strings.HasSuffix(name, ".gguf") {
			size += info.Size()
		}
	}
	t.Logf("killed %d times; %d bytes of large files, %d bytes sent, %d parts stored again", killed, size, sent, again)
	if killed < 10 {
		t.Errorf("killed %d times", killed)
	}
	if most := size + int64(4*killed)*pushPart; sent > most || again > 0 {
		t.Errorf("%d bytes sent, want at most %d; %d parts again", sent, most, again)
	}
	var v struct{ Commits []any }
	h.ask("tree/org/killed", nil, &v)
	if len(v.Commits) != 2 {
		t.Errorf("%d commits, want one after the first", len(v.Commits))
	}
	h.same("org/killed", dir)
	if code := h.push(0, "--private", dir, "hf://org/killed"); code != 0 {
		t.Errorf("again: exit code %d", code)
	}
	if _, now := h.fair(); sumSent(now) != sent {
		t.Errorf("%d bytes sent again", sumSent(now)-sent)
	}

	if root == "" {
		t.Log("no ORACLE_ROOT: the hub's client was not run")
		return
	}
	sweep(t)
	down := work + "/down"
	const script = `import sys
from huggingface_hub import snapshot_download, HfApi
snapshot_download(sys.argv[1], local_dir=sys.argv[2])
v = HfApi().verify_repo_checksums(sys.argv[1], local_dir=sys.argv[2])
sys.exit(bool(v.mismatches or v.missing_paths))
`
	cmd := exec.Command("chroot", root, "env", "HF_ENDPOINT="+h.url, "HF_TOKEN="+h.token, "HF_HUB_DISABLE_XET=1",
		"HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_DISABLE_TELEMETRY=1", "HF_HOME="+work+"/home", "python3", "-c",
		script, "org/killed", down)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("huggingface_hub: %v\n%s", err, out)
	}
	if got, want := folderSums(t, root+down), folderSums(t, dir); !maps.Equal(got, want) {
		t.Errorf("huggingface_hub has downloaded\n%v\nwant\n%v", got, want)
	}
	must(t, errors.Join(os.RemoveAll(root+down), os.RemoveAll(root+work+"/home")))
}

func sumSent(r hubReport) (n int64) {
	for _, s := range r.Sent {
		n += s.Bytes
	}
	return n
}

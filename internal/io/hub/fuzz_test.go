package hub

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzAnswers reads arbitrary bytes as answers of a hub.
func FuzzAnswers(f *testing.F) {
	sum := strings.Repeat("a", 64)
	for _, s := range []string{
		`{"objects":[{"oid":"` + sum + `","size":25,"actions":{"upload":{"href":"https://store/x","header":` +
			`{"chunk_size":"10","00001":"https://store/1","00002":"https://store/2","00003":"https://store/3"}},` +
			`"verify":{"href":"https://hub/v"}}}]}`,
		`{"objects":[{"oid":"` + sum + `","actions":{"upload":{"href":"https://store/x?X-Amz-Signature=secret"}}}]}`,
		`{"objects":[{"oid":"` + sum + `","error":{"code":422,"message":"use Xet"}}]}`,
		`[{"type":"file","path":"a","size":1,"oid":"b","lfs":{"oid":"c","size":2}}]`,
		`{"files":[{"path":"a","uploadMode":"lfs","shouldIgnore":true}]}`,
		`{"commitOid":"` + sum[:40] + `","commitUrl":"https://hub/x?y","pullRequestUrl":"https://hub/discussions/7"}`,
		`<Error><Code>AccessDenied</Code><Message>see https://store/x?X-Amz-Signature=1</Message></Error>`,
		`<Error><CodeMessas://ee httpge>sstenied<X-Amz-Signature=1</MessaXX></Error>`,
	} {
		f.Add([]byte(s))
	}
	c, err := New(Options{Endpoint: "https://hub", Token: "hf_token"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := Object{sum, 25}
		if grants, err := c.parseBatch("op", []Object{o}, data); err == nil {
			for i := range grants {
				g := &grants[i]
				if g.Check(o, true) != nil || g.Put == "" && !g.There && len(g.Parts) == 0 {
					t.Errorf("%+v", g)
				}
				total := int64(0)
				for n := range g.Parts {
					off, size := g.Span(n)
					if off != total || size <= 0 {
						t.Errorf("part %d of %+v: %d bytes at %d", n, g, size, off)
					}
					total += size
				}
				if len(g.Parts) > 0 && total != o.Size {
					t.Errorf("%+v: %d bytes", g, total)
				}
			}
		}
		addEntries("op", map[string]Entry{}, data)
		addModes("op", map[string]Mode{}, []Sample{{Path: "a", Size: 1}}, data)
		if m, err := c.parseMade("op", data, true); err == nil && (!commitForm.MatchString(m.Commit) ||
			!IsPullRequest(m.Branch) || strings.Contains(m.PullRequest, "?")) {
			t.Errorf("%+v", m)
		}
		e := c.explained("op", &http.Response{StatusCode: 400, Header: http.Header{"X-Error-Message": {string(data)},
			"Ratelimit": {string(data)}}}, data)
		if text := e.Error(); strings.Contains(text, "hf_token") || strings.Contains(text, "X-Amz-Signature=1") ||
			len(e.Message) > maxMessage+10 || e.After() < 0 || e.After() > maxWait {
			t.Errorf("%q, %v", text, e.After())
		}
		nextPage([]string{string(data)})
	})
}

// FuzzParse reads names of repositories: none leads elsewhere.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"hf://org/name", "hf://org/name@refs/pr/1", "hf://../..", "hf://a/b@../x",
		"hf://a/b?c"} {
		f.Add(s)
	}
	c, err := New(Options{Endpoint: "https://hub"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, branch, err := Parse(name)
		if err != nil {
			return
		}
		if strings.Count(r.String(), "/") != 1 || strings.Contains(r.String()+branch, "..") ||
			strings.ContainsAny(r.String()+branch, "?#%\\ @:") || c.Page(r) != "https://hub/"+r.String() {
			t.Errorf("%q is %q at %q", name, r, branch)
		}
	})
}

// TestWaits reads what servers ask to wait.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"RateLimit", `"api";r=0;t=55`, 55 * time.Second},
		{"RateLimit", `"api";r=0;t=99999`, maxWait}, {"Retry-After", "-1", 0}, {"Retry-After", "soon", 0}, {"X", "", 0},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := waitOf(h); got != c.want {
			t.Errorf("%s: %s: %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

// TestCommitSize compares the announced size of a commit with its bytes.
func TestCommitSize(t *testing.T) {
	change := Change{Summary: "a \"title\"", Parent: strings.Repeat("0", 40), Files: []Added{
		{Path: "a <b> ä.gguf", Object: Object{strings.Repeat("a", 64), 7}}}}
	for n := range 7 {
		content := make([]byte, n)
		change.Files = append(change.Files, Added{Path: "t", Object: Object{Size: int64(n)},
			Content: func() ([]byte, error) { return content, nil }})
	}
	want := int64(0)
	for i := -1; i < len(change.Files); i++ {
		n, err := change.lineSize(i)
		if err != nil {
			t.Fatal(err)
		}
		want += n
	}
	var got int64
	buf := make([]byte, 13)
	for b := (&commitBody{change: &change, next: -1}); ; {
		n, err := b.Read(buf)
		got += int64(n)
		if err != nil {
			break
		}
	}
	if got != want {
		t.Errorf("%d bytes, announced %d", got, want)
	}
}

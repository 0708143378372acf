package submit

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
)

// documents reads a manifest.
func documents(t *testing.T, manifest []byte) (all []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(manifest)); ; {
		var one map[string]any
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, manifest)
		}
		all = append(all, one)
	}
}

// at returns the value at a path in a document, of keys and numbers of elements.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("%v: there are %d", path, len(l))
			}
			v = l[p]
		}
	}
	return v
}

// expand expands a word of a command as Kubernetes does: $(NAME) is a variable, $$ a $.
func expand(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '$' || i+1 == len(word) {
			b.WriteByte(word[i])
			continue
		}
		switch i++; word[i] {
		case '$':
			b.WriteByte('$')
		case '(':
			if end := strings.IndexByte(word[i:], ')'); end >= 0 {
				b.WriteString("EXPANDED")
				i += end
				continue
			}
			b.WriteString("$(")
		default:
			b.WriteByte('$')
			b.WriteByte(word[i])
		}
	}
	return b.String()
}

// FuzzManifest reads back manifests with arbitrary strings: the strings must be unchanged.
func FuzzManifest(f *testing.F) {
	for _, s := range []string{"", "yes", "0x1", "1e3", "~", "null", "a: b", "- a", "#", "a\nb", "---", "\t", "$(JOB)",
		"$$(X)", "$", "a$$", "'\"", "\u2028", "\x00", "\xff", "{{.}}", "&a", "*a", "!!int 1", "\r\n", "é",
		"\U0001F600", " x "} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, arg, image, secret string) {
		k := Kubernetes{Pods: Pods{Image: image, Claim: "c", Secret: secret, Namespace: image},
			Job: Job{Command: []string{"ggquant", "first", arg, "$" + arg}, Parts: 3}}
		manifest, err := k.Manifest()
		if err != nil {
			if !errors.Is(err, fault.Usage) {
				t.Fatal(err)
			}
			return
		}
		all := documents(t, manifest)
		if len(all) != 2 {
			t.Fatalf("%d documents\n%s", len(all), manifest)
		}
		for i, want := range [][]string{k.Part(), k.Finish()} {
			pod := at(t, all[i], "spec", "template", "spec")
			var got []string
			for _, word := range at(t, pod, "containers", 0, "command").([]any) {
				got = append(got, expand(word.(string)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q\n%s", got, want, manifest)
			}
			if got := at(t, pod, "containers", 0, "image"); got != image ||
				at(t, all[i], "metadata", "namespace") != image {
				t.Errorf("image %q, want %q\n%s", got, image, manifest)
			}
			if got := at(t, pod, "containers", 0, "envFrom"); secret == "" && got != nil ||
				secret != "" && at(t, got, 0, "secretRef", "name") != secret {
				t.Errorf("secret %q, want %q\n%s", got, secret, manifest)
			}
		}
	})
}

func TestManifest(t *testing.T) {
	k := Kubernetes{Pods: Pods{Image: "i", Namespace: "n", Mount: "/data", User: 7}, Storage: 1 << 40,
		StorageClass: "s", Wait: time.Hour, Job: Job{
			Name: "X", Command: []string{"ggconv", "in", "out"}, Parts: 16, AtOnce: 5, Retries: 3, CPUs: 4, Memory: 5e9,
			Grace: 45 * time.Second,
		}}
	manifest, err := k.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, manifest)
	for _, c := range []struct {
		want any
		path []any
	}{
		{"PersistentVolumeClaim", []any{0, "kind"}},
		{"x-work", []any{0, "metadata", "name"}},
		{"s", []any{0, "spec", "storageClassName"}},
		{"1Ti", []any{0, "spec", "resources", "requests", "storage"}},
		{"Indexed", []any{1, "spec", "completionMode"}},
		{16, []any{1, "spec", "completions"}},
		{5, []any{1, "spec", "parallelism"}},
		{3, []any{1, "spec", "backoffLimitPerIndex"}},
		{nil, []any{1, "spec", "backoffLimit"}},
		{"FailIndex", []any{1, "spec", "podFailurePolicy", "rules", 1, "action"}},
		{"n", []any{2, "metadata", "namespace"}},
		{"x-finish", []any{2, "metadata", "name"}},
		{3600, []any{2, "spec", "activeDeadlineSeconds"}},
		{16, []any{2, "spec", "backoffLimit"}},
		{nil, []any{2, "spec", "completions"}},
		{45, []any{2, "spec", "template", "spec", "terminationGracePeriodSeconds"}},
		{7, []any{2, "spec", "template", "spec", "securityContext", "runAsUser"}},
		{"/data", []any{2, "spec", "template", "spec", "containers", 0, "workingDir"}},
		{"/data", []any{2, "spec", "template", "spec", "containers", 0, "volumeMounts", 0, "mountPath"}},
		{"4", []any{2, "spec", "template", "spec", "containers", 0, "resources", "limits", "cpu"}},
		{"5G", []any{2, "spec", "template", "spec", "containers", 0, "resources", "requests", "memory"}},
		{"x-work", []any{2, "spec", "template", "spec", "volumes", 0, "persistentVolumeClaim", "claimName"}},
	} {
		if got := at(t, all[c.path[0].(int)], c.path[1:]...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	for want, change := range map[string]func(k *Kubernetes){
		"no image":                       func(k *Kubernetes) { k.Image = "" },
		"neither a claim nor":            func(k *Kubernetes) { k.Storage, k.StorageClass = 0, "" },
		"want its size":                  func(k *Kubernetes) { k.Storage = 0 },
		"output out: the machines share": func(k *Kubernetes) { k.Storage, k.StorageClass, k.Outputs = 0, "", []string{"out"} },
		"want only one of them":          func(k *Kubernetes) { k.Claim = "c" },
		"user -1":                        func(k *Kubernetes) { k.User = -1 },
		`the volume at "data": want an`:  func(k *Kubernetes) { k.Mount = "data" },
		"a wait of -1ns":                 func(k *Kubernetes) { k.Wait = -1 },
		`"\xff": want UTF-8; Kubernetes`: func(k *Kubernetes) { k.Secret = "\xff" },
	} {
		bad := k
		change(&bad)
		if _, err := bad.Manifest(); !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestPods counts pods that all fail at once, with the delays in the documentation of the Job controller.
func TestPods(t *testing.T) {
	for wait, want := range map[time.Duration]int64{0: 1, time.Second: 2, 10 * time.Second: 2, 11 * time.Second: 3,
		630 * time.Second: 7, 631 * time.Second: 8, 24 * time.Hour: 246} {
		if got := pods(wait); got != want {
			t.Errorf("%v: %d pods, want %d", wait, got, want)
		}
	}
}

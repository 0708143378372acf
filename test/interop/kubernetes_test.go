package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetes has a third-party validator compare manifests with the published schemas of Kubernetes.
func TestKubernetes(t *testing.T) {
	validator := strings.Fields(os.Getenv("KUBERNETES_VALIDATOR"))
	if len(validator) == 0 || bin == "" {
		t.Skip("needs a validator: run make kubernetes")
	}
	dir := t.TempDir()
	valid := func(name, manifest string) (string, bool) {
		path := filepath.Join(dir, name+".yaml")
		must(t, os.WriteFile(path, []byte(manifest), 0o666))
		out, errs, code := outcome(t, exec.Command(validator[0], append(validator[1:], path)...))
		return out + errs, code == 0
	}
	var manifests []string
	for name, args := range map[string][]string{
		"small": {"--parts", "1", "--claim", "c", "--", "ggconv", "in", "out.gguf"},
		"all": {"--parts", "16", "--at-once", "4", "--retries", "3", "--cpus", "8", "--mem", "4G", "--grace", "1m",
			"--name", "A b", "--namespace", "n", "--storage", "2T", "--storage-class", "s", "--mount", "/data",
			"--user", "7", "--secret", "x", "--wait", "2h", "--", "ggquant", "in", "out.gguf", "Q4_K_M"},
		"values": {"--parts", "2", "--claim", "c", "--", "ggquant", "yes", "0x1f", "1e3", "null", "~", "a: b", "- a",
			"#x", "a\nb", "$(JOB)", "{{.}}", "&a", "\u2028", "12:30:45", "2001-01-01", "=", "<<", "'\"\\"},
	} {
		manifest, errs, code := outcome(t, exec.Command(filepath.Join(bin, "ggtool"),
			append([]string{"submit", "k8s", "--image", "registry.example/ggforge:1"}, args...)...))
		if code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, errs)
		}
		if out, ok := valid(name, manifest); !ok {
			t.Errorf("%s: %s\n%s", name, out, manifest)
		}
		manifests = append(manifests, manifest)
	}
	for _, wrong := range [][2]string{
		{"backoffLimitPerIndex:", "backoffLimitPerIndexes:"}, {"parallelism: ", "parallelism: many # "},
		{"template:", "templates:"},
		{"runAsNonRoot: true", "runAsNonRoot: 1"}, {"operator: In", "operators: In"},
	} {
		if out, ok := valid("wrong", strings.Replace(manifests[0], wrong[0], wrong[1], 1)); ok {
			t.Errorf("%s instead of %s is accepted: %s", wrong[1], wrong[0], out)
		}
	}
}

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// printed returns the job that ggtool submit prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	job, errs, code := outcome(t, exec.Command(filepath.Join(bin, "ggtool"), append([]string{"submit"}, args...)...))
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, errs)
	}
	return job
}

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
		"values": {"--parts", "2", "--claim", "c", "--", "ggeval", "compare", "--part-files", "p", "-f", "t",
			"yes", "0x1f", "1e3", "null", "~", "a: b", "--", "- a", "#x", "a\nb", "$(JOB)", "{{.}}", "&a", "\u2028", "12:30:45", "2001-01-01", "=", "<<", "'\"\\"},
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
	for _, flags := range [][]string{{"--claim", "c"}, {}} {
		manifest := printed(t, slices.Concat([]string{"kueue", "--queue", "q", "--parts", "4", "--image", "i"}, flags,
			[]string{"--", "ggquant", "hf://o/m", "s3://bucket/x.gguf", "Q8_0"})...)
		if out, ok := valid("kueue", manifest); !ok {
			t.Errorf("%s\n%s", out, manifest)
		}
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
	t.Run("argo", func(t *testing.T) {
		argo := os.Getenv("ARGO_VALIDATOR")
		if argo == "" {
			t.Skip("needs Argo's rules and schema")
		}
		validator = append(validator, "--local-crds", filepath.Join(argo, "crds"))
		// The schema's validator makes no names, the controller's rules know none.
		schema := func(manifest string) (string, bool) {
			return valid("argo", strings.Replace(manifest, `generateName: "ggquant-"`, `name: "ggquant"`, 1))
		}
		rules := func(manifest string) (string, bool) {
			path := filepath.Join(dir, "workflow.yaml")
			must(t, os.WriteFile(path, []byte(manifest), 0o666))
			out, errs, code := outcome(t, exec.Command(filepath.Join(argo, "argovalidate"), path))
			return out + errs, code == 0
		}
		var manifest string
		for _, flags := range [][]string{{}, {"--claim", "c", "--mount", "/d", "--namespace", "n", "--secret", "s",
			"--user", "7", "--service-account", "a", "--at-once", "3", "--cpus", "2", "--mem", "4G", "--retries", "0"}} {
			manifest = printed(t, slices.Concat([]string{"argo", "--parts", "4", "--image", "i"}, flags,
				[]string{"--", "ggquant", "hf://o/m", "s3://bucket/$(X).gguf", "Q8_0"})...)
			for _, check := range []func(string) (string, bool){schema, rules} {
				if out, ok := check(manifest); !ok {
					t.Errorf("%s\n%s", out, manifest)
				}
			}
		}
		for _, wrong := range [][2]string{{"withSequence:", "withSequences:"}, {"serviceAccountName", "serviceAccount_"}} {
			if out, ok := schema(strings.Replace(manifest, wrong[0], wrong[1], 1)); ok {
				t.Errorf("the schema accepts %s instead of %s: %s", wrong[1], wrong[0], out)
			}
		}
		for _, wrong := range [][2]string{{"{{inputs.parameters.part}}", "{{inputs.parameters.no}}"},
			{"template: part", "template: no"}, {"entrypoint: all", "entrypoint: no"}} {
			if out, ok := rules(strings.Replace(manifest, wrong[0], wrong[1], 1)); ok {
				t.Errorf("Argo accepts %s instead of %s: %s", wrong[1], wrong[0], out)
			}
		}
	})
}

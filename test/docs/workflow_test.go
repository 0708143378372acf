package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPublishWorkflow runs the script of the workflow that publishes models, and looks at the command that it becomes.
func TestPublishWorkflow(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	text, err := os.ReadFile("../../.github/workflows/publish-model.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		On struct {
			Call struct {
				Inputs map[string]struct {
					Required bool
					Default  any
				}
			} `yaml:"workflow_call"`
		}
		Jobs map[string]struct {
			Steps []struct {
				Name, Uses, Run string
				Env             map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	for name, in := range workflow.On.Call.Inputs {
		if in.Required == (in.Default != nil) {
			t.Errorf("input %s: want a default, or that it is required", name)
		}
		if !strings.Contains(string(text), "inputs."+name+" ") {
			t.Errorf("input %s: nothing reads it", name)
		}
	}
	dir := t.TempDir()
	stub := "#!/bin/sh\nprintf '<%s>' \"$@\" > " + dir + "/args\n"
	if err := os.WriteFile(filepath.Join(dir, "ggtool"), []byte(stub), 0o777); err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, s := range workflow.Jobs["publish"].Steps {
		if s.Env["PLAN"] == "" {
			continue
		}
		ran = true
		cmd := exec.Command(bash, "-euo", "pipefail", "-c", s.Run)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "RUNNER_TEMP=/t", "PLAN=-a b.yaml",
			"REPOSITORY=acme/M@x", "FLAGS= --private  --dry-run ")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got, err := os.ReadFile(filepath.Join(dir, "args"))
		want := "<release><--output></t/release><--push><hf://acme/M@x><--progress><none><--private><--dry-run><--><-a b.yaml>"
		if err != nil || string(got) != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if !ran {
		t.Error("no step has a plan")
	}
}

// TestVulnerabilityWorkflow checks that a workflow looks for known vulnerabilities every week, by the target of the
// Makefile, with a version of the tool that is fixed there, and fails if there are some.
func TestVulnerabilityWorkflow(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/vulnerabilities.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		On struct {
			Schedule []struct{ Cron string }
		}
		Permissions map[string]string
		Jobs        map[string]struct {
			Continue bool `yaml:"continue-on-error"`
			Steps    []struct {
				Run      string
				Continue bool `yaml:"continue-on-error"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	if len(workflow.On.Schedule) != 1 || len(strings.Fields(workflow.On.Schedule[0].Cron)) != 5 {
		t.Errorf("schedule %v", workflow.On.Schedule)
	}
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
		t.Errorf("permissions %v", workflow.Permissions)
	}
	run := false
	for name, j := range workflow.Jobs {
		if j.Continue {
			t.Errorf("job %s goes on after errors", name)
		}
		for _, s := range j.Steps {
			if run = run || s.Run == "make vuln"; s.Continue {
				t.Errorf("job %s has a step that goes on after errors: %s", name, s.Run)
			}
		}
	}
	if !run {
		t.Error("no step runs make vuln")
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^GOVULNCHECK := golang\.org/x/vuln/cmd/govulncheck@v\d+\.\d+\.\d+$`).Match(makefile) {
		t.Error("the Makefile has no fixed version of govulncheck")
	}
}

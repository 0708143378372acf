package submit

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
	"ggforge/internal/io/part"
)

// Argo is a job for Argo Workflows 3.5 or later: a Workflow whose first step is all parts, and whose second one
// finishes. Without Claim there is no volume, and inputs and outputs have to be on servers.
type Argo struct {
	Job
	Pods
	// ServiceAccount is the account of the pods, "" for the namespace's default. It needs the rights of an executor.
	ServiceAccount string
}

// retryable is true for what a retry may change: a pod without an exit code, which has -1, a read or write error, and
// kills. The other codes are usage, broken input, not supported and refused.
const retryable = "asInt(lastRetry.exitCode) < 2 || asInt(lastRetry.exitCode) > 5"

// Manifest returns the YAML document for argo submit or kubectl create. Each step has the number of its part in an
// environment variable. A part that fails for good ends the Workflow when the other parts have ended; argo retry runs it
// again.
func (a *Argo) Manifest() ([]byte, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := a.checkPods(&a.Job); err != nil {
		return nil, err
	}
	if err := isText("Kubernetes", a.ServiceAccount); err != nil {
		return nil, err
	}
	for _, s := range append([]string{a.Image, a.Namespace, a.Claim, a.Mount, a.Secret, a.ServiceAccount},
		a.Command...) {
		if strings.Contains(s, "{{") {
			return nil, fault.Errorf(fault.Usage, "%q: Argo takes {{ for the beginning of a variable", s)
		}
	}
	if a.Claim == "" {
		if err := a.onServers("or a claim of a volume for all pods"); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(a.workflow()); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

func (a *Argo) workflow() object {
	var atOnce any
	if a.AtOnce > 0 {
		atOnce = a.AtOnce
	}
	return object{"apiVersion", "argoproj.io/v1alpha1", "kind", "Workflow", "metadata", object{
		"generateName", text(a.CleanName() + "-"), "namespace", given(a.Namespace), "labels", a.labels("workflow"),
	}, "spec", object{
		"entrypoint", "all",
		"parallelism", atOnce,
		"serviceAccountName", given(a.ServiceAccount),
		"securityContext", a.securityContext(),
		"volumes", volumes(a.Claim),
		"templates", []object{
			{"name", "all", "steps", [][]object{
				{{"name", "parts", "template", "part",
					"arguments", object{"parameters", []object{{"name", "part", "value", "{{item}}"}}},
					"withSequence", object{"start", text("1"), "end", text(strconv.Itoa(a.Parts))}}},
				{{"name", "finish", "template", "finish"}},
			}},
			a.template("part", a.Part(),
				"inputs", object{"parameters", []object{{"name", "part"}}}),
			a.template("finish", a.Finish()),
		},
	}}
}

// template returns the template that runs a command; more are further fields.
func (a *Argo) template(name string, command []string, more ...any) object {
	c := a.container(&a.Job, a.Claim != "", command)
	if name == "part" {
		c = append(c, "env", []object{{"name", part.Own, "value", text("{{inputs.parameters.part}}")},
			{"name", part.OwnCount, "value", text(strconv.Itoa(a.Parts))}})
	}
	var retry any
	if a.Retries > 0 {
		retry = object{"limit", text(strconv.Itoa(a.Retries)), "retryPolicy", "Always", "expression", text(retryable)}
	}
	return append(append(object{"name", name}, more...), "metadata", object{"labels", a.labels(name)},
		"retryStrategy", retry, "container", c)
}

package submit

import (
	"bytes"
	"strconv"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
)

// SkyPilot is a managed job of SkyPilot, whose machines share no disk: a pipeline of a task on as many nodes as there
// are parts, and a task that finishes. Inputs and outputs have to be on servers.
type SkyPilot struct {
	Job
	// Setup is shell code that installs the commands on a node, Image an image of Docker that has them, a shell and
	// what else SkyPilot needs in one. At least one must be set.
	Setup, Image string
	// Infra is where the nodes are, such as aws/us-east-1; "" for wherever it is cheapest.
	Infra string
	// Spot takes nodes that may be taken away; the task is then started again, and parts resume.
	Spot bool
	// Secrets are names of environment variables, whose values sky jobs launch --secret NAME takes.
	Secrets []string
}

// Manifest returns the YAML documents for sky jobs launch. If a node fails or is taken away, SkyPilot starts all nodes
// of the task again: finished parts only compare, others resume. A command that fails starts the task again at most
// Retries times.
func (s *SkyPilot) Manifest() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.Setup == "" && s.Image == "" {
		return nil, fault.Errorf(fault.Usage, "the nodes have no commands: want shell code that installs them, or an image")
	}
	if err := noNUL(s.Setup, s.Image, s.Infra); err != nil {
		return nil, err
	}
	if err := isText("SkyPilot", append([]string{s.Setup, s.Image, s.Infra}, s.Command...)...); err != nil {
		return nil, err
	}
	for _, name := range s.Secrets {
		if !isVariable(name) {
			return nil, fault.Errorf(fault.Usage, "secret %.20q: want the name of an environment variable", nameOnly(name))
		}
	}
	if err := s.onServers("SkyPilot mounts buckets, in which parts of a file cannot be written"); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, d := range []object{{"name", text(s.CleanName())}, s.task("parts", s.Parts, s.Part()),
		s.task("finish", 1, s.Finish())} {
		if err := e.Encode(d); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}

// task returns the task of a kind on some nodes.
func (s *SkyPilot) task(kind string, nodes int, command []string) object {
	var cpus, memory, image, spot, recovery, secrets any
	if s.CPUs > 0 {
		cpus = text(strconv.Itoa(s.CPUs) + "+")
	}
	if s.Memory > 0 { // GB
		memory = text(strconv.FormatInt((s.Memory-1)/1e9+1, 10) + "+")
	}
	if s.Image != "" {
		image = text("docker:" + s.Image)
	}
	if s.Spot {
		spot = true
	}
	if s.Retries > 0 {
		recovery = object{"max_restarts_on_errors", s.Retries}
	}
	if len(s.Secrets) > 0 {
		list := object{}
		for _, name := range s.Secrets {
			list = append(list, text(name), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
		}
		secrets = list
	}
	return object{
		"name", text(s.CleanName() + "-" + kind),
		"num_nodes", nodes,
		"resources", object{"infra", given(s.Infra), "cpus", cpus, "memory", memory, "image_id", image, "use_spot", spot,
			"job_recovery", recovery},
		"secrets", secrets,
		"setup", given(s.Setup),
		"run", text(breaks(command) + quote(command) + "\n"),
	}
}

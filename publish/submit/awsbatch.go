package submit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ggforge/fault"
)

// AWSBatch is a job for AWS Batch: an array job with a child for each part, and a job that depends on it. Without
// FileSystem, inputs and outputs have to be on servers.
type AWSBatch struct {
	Job
	// Image is an image with the commands, whose working directory is /work, such as that of the Dockerfile of this
	// project. Queue is the job queue. Both must be set, as must CPUs and Memory.
	Image, Queue string
	// Role is the ARN of the role of the command, such as for reading and writing S3; ExecutionRole that of the agent
	// that fetches the image and the secrets. "" for none.
	Role, ExecutionRole string
	// Secrets are environment variables and the ARN of a secret of Secrets Manager, or a parameter, with the value:
	// HF_TOKEN=arn:aws:secretsmanager:….
	Secrets []string
	// FileSystem is the ID of a file system of EFS that is mounted at /work, "" for none.
	FileSystem string
	// Fargate runs the containers without machines of one's own.
	Fargate bool
	// Time is the time limit of an attempt, at least a minute; 0 for none.
	Time time.Duration
}

// Limits of AWS Batch: children of an array, and attempts of a job.
const (
	leastChildren, mostChildren = 2, 10_000
	mostAttempts                = 10
)

// Script returns a script for sh that registers a job definition, submits both jobs with the AWS CLI, and prints their
// IDs. An attempt that was killed or had a read or write error is followed by another one, at most Retries and nine
// times; the exit codes 2 to 5 end the part. The job that finishes starts when all parts have succeeded.
func (a *AWSBatch) Script() (string, error) {
	if err := a.Check(); err != nil {
		return "", err
	}
	if err := a.checkStrings(); err != nil {
		return "", err
	}
	definition, err := document(a.definition())
	if err != nil {
		return "", err
	}
	parts, err := document(a.job("parts", a.Part()))
	if err != nil {
		return "", err
	}
	finish, err := document(a.job("finish", a.Finish()))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`#!/bin/sh
# Submits the parts and the job that finishes: sh FILE
set -eu
definition=$(aws batch register-job-definition --query jobDefinitionArn --output text --cli-input-json %s </dev/null)
parts=$(aws batch submit-job --query jobId --output text --job-definition "$definition" --cli-input-json %s </dev/null)
finish=$(aws batch submit-job --query jobId --output text --job-definition "$definition" --depends-on "jobId=$parts" --cli-input-json %s </dev/null)
echo "$parts $finish"
`, definition, parts, finish), nil
}

// checkStrings refuses what AWS Batch does not accept.
func (a *AWSBatch) checkStrings() error {
	switch {
	case a.Image == "":
		return fault.Errorf(fault.Usage, "no image: want the name of an image with the commands")
	case a.Queue == "":
		return fault.Errorf(fault.Usage, "no queue: want the name or ARN of a job queue")
	case a.CPUs == 0 || a.Memory == 0:
		return fault.Errorf(fault.Usage, "%d CPUs and %d bytes of memory: AWS Batch needs both", a.CPUs, a.Memory)
	case a.Parts < leastChildren || a.Parts > mostChildren:
		return fault.Errorf(fault.Usage, "%d parts: an array of AWS Batch has %d to %d", a.Parts, leastChildren,
			mostChildren)
	case a.Time < 0 || a.Time > 0 && a.Time < time.Minute:
		return fault.Errorf(fault.Usage, "a time limit of %v: AWS Batch wants a minute or more", a.Time)
	case a.Fargate && a.ExecutionRole == "":
		return fault.Errorf(fault.Usage, "Fargate needs an execution role: it fetches the image with it")
	}
	words := append([]string{a.Image, a.Queue, a.Role, a.ExecutionRole, a.FileSystem}, a.Secrets...)
	if err := isText("AWS Batch", append(words, a.Command...)...); err != nil {
		return err
	}
	for _, s := range a.Secrets {
		name, from, _ := strings.Cut(s, "=")
		if !isVariable(name) || !strings.HasPrefix(from, "arn:") {
			return fault.Errorf(fault.Usage,
				"secret %.20q: want NAME=ARN, such as HF_TOKEN=arn:aws:secretsmanager:REGION:…", name)
		}
	}
	for _, w := range a.Command {
		if strings.Contains(w, "Ref::") {
			return fault.Errorf(fault.Usage, "%q: AWS Batch takes Ref:: for the beginning of a parameter", w)
		}
	}
	if a.FileSystem == "" {
		return a.onServers("or a file system of EFS that is mounted at /work")
	}
	return nil
}

// fields is an object of JSON.
type fields = map[string]any

// document returns an object as JSON, quoted for the shell.
func document(f fields) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return "", err
	}
	return quote([]string{strings.TrimSuffix(b.String(), "\n")}), nil
}

// definition returns the input of register-job-definition.
func (a *AWSBatch) definition() fields {
	c := fields{
		"image": a.Image,
		"user":  strconv.FormatInt(defaultUser, 10),
		"resourceRequirements": []fields{{"type": "VCPU", "value": strconv.Itoa(a.CPUs)},
			{"type": "MEMORY", "value": strconv.FormatInt((a.Memory-1)/(1<<20)+1, 10)}}, // MiB
	}
	if a.Role != "" {
		c["jobRoleArn"] = a.Role
	}
	if a.ExecutionRole != "" {
		c["executionRoleArn"] = a.ExecutionRole
	}
	var secrets []fields
	for _, s := range a.Secrets {
		name, from, _ := strings.Cut(s, "=")
		secrets = append(secrets, fields{"name": name, "valueFrom": from})
	}
	if secrets != nil {
		c["secrets"] = secrets
	}
	if a.FileSystem != "" {
		c["volumes"] = []fields{{"name": "work", "efsVolumeConfiguration": fields{"fileSystemId": a.FileSystem,
			"transitEncryption": "ENABLED"}}}
		c["mountPoints"] = []fields{{"sourceVolume": "work", "containerPath": defaultMount}}
	}
	d := fields{"jobDefinitionName": a.CleanName(), "type": "container", "containerProperties": c,
		"retryStrategy": a.retryStrategy()}
	if a.Fargate {
		d["platformCapabilities"] = []string{"FARGATE"}
	}
	if a.Time > 0 {
		d["timeout"] = fields{"attemptDurationSeconds": units(a.Time, time.Second)}
	}
	return d
}

// retryStrategy returns the strategy for failed attempts: what no rule is about is tried again.
func (a *AWSBatch) retryStrategy() fields {
	var rules []fields
	for _, code := range permanent {
		rules = append(rules, fields{"onExitCode": strconv.Itoa(code), "action": "EXIT"})
	}
	return fields{"attempts": min(a.Retries+1, mostAttempts), "evaluateOnExit": rules}
}

// job returns the input of submit-job for one of the jobs, without the definition.
func (a *AWSBatch) job(kind string, command []string) fields {
	j := fields{"jobName": a.CleanName() + "-" + kind, "jobQueue": a.Queue,
		"containerOverrides": fields{"command": command}}
	if kind == "parts" {
		j["arrayProperties"] = fields{"size": a.Parts}
	}
	return j
}

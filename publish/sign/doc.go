// Package sign signs folders and verifies such signatures, in the format of OpenSSF Model Signing 1.0
// (https://github.com/ossf/model-signing-spec, spec/v1.0.md), with private keys and certificates. Nothing is asked of a
// server.
//
//	folder ──► Files: names and sums ──► Model: statement ──► Signer.Sign: bundle ──► model.sig
//	model.sig ──► Parse: bundle ──► Verify with a key or roots: Signed ──► Compare with a folder
//
// A signature is a JSON file of four layers, each in the next:
//
//	Sigstore bundle   mediaType, verificationMaterial (SHA-256 of the public key, or the chain of certificates)
//	DSSE envelope     payloadType, payload in base64, one ECDSA signature of "DSSEv1 LEN TYPE LEN PAYLOAD"
//	in-toto statement subject, predicateType
//	predicate         resources (names and SHA-256 sums of all files), serialization (ignore_paths, ...)
//
// Curves are P-256 with SHA-256, P-384 with SHA-384 and P-521 with SHA-512. Signatures are deterministic (RFC 6979):
// the same key and the same files give the same bytes.
//
// Measured with the reference implementation and with cosign 3.1.1: both verify what Sign makes, on all three curves,
// and Verify what the reference makes; cosign takes larger curves than P-256 with --signature-digest-algorithm.
//
// The same envelope around a provenance statement (https://slsa.dev/provenance/v1), whose subjects are files, is
// signed and verified, too.
//
// Verifying is strict where the specification is: one signature, one kind of key, known types, hashes and methods; a
// name that leads out of the folder or is there twice, and a member of a JSON object that is there twice, are errors.
// The order of resources is not checked: the reference implementation (model_signing) sorts by parts of paths, the
// specification by code points. Signatures of its versions before 1.0 that used SHA-256 with every curve are verified;
// those of 0.2 with another predicate are not. Not handled are shards, BLAKE hashes, links, and signatures by Sigstore
// identities, which need its servers.
package sign

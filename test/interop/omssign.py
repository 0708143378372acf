#!/usr/bin/env python3
"""Signs a folder in the format of OpenSSF Model Signing 1.0: Python 3 and the openssl command, nothing else.

    omssign.py DIR KEY.pem [CHAIN.pem]      writes DIR/model.sig

Written from spec/v1.0.md of github.com/ossf/model-signing-spec, as a signer that is not ours: the tests verify what it
makes, and publish/sign/testdata has signatures of it (omsvectors.sh). It writes what the reference implementation
does: indented JSON, resources in the order of parts of paths, sorted ignore_paths.
"""
import base64, hashlib, json, os, pathlib, re, subprocess, sys

IGNORED = [".git", ".gitattributes", ".github", ".gitignore", "README.md", "model.sig"]
TYPE = b"application/vnd.in-toto+json"


def openssl(*args, data=None):
    return subprocess.run(["openssl", *args], input=data, capture_output=True, check=True).stdout


def b64(data):
    return base64.b64encode(data).decode()


def main(dir, key, chain=None):
    root = pathlib.Path(dir)
    resources = []
    for path in sorted(p.relative_to(root) for p in root.rglob("*")):
        if path.parts[0] not in IGNORED and (root / path).is_file():
            digest = hashlib.sha256((root / path).read_bytes()).hexdigest()
            resources.append({"algorithm": "sha256", "digest": digest, "name": path.as_posix()})
    whole = hashlib.sha256(b"".join(bytes.fromhex(r["digest"]) for r in resources)).hexdigest()
    serialization = {"allow_symlinks": False, "hash_type": "sha256", "ignore_paths": IGNORED, "method": "files"}
    payload = json.dumps({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": root.resolve().name, "digest": {"sha256": whole}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {"serialization": serialization, "resources": resources},
    }, indent=2).encode()
    public = openssl("pkey", "-in", key, "-pubout")
    curve = re.search(rb"NIST CURVE: P-(\d+)", openssl("pkey", "-in", key, "-noout", "-text")).group(1)
    hash = {b"256": "sha256", b"384": "sha384", b"521": "sha512"}[curve]
    signed = b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE, len(payload), payload)
    material = {"publicKey": {"hint": hashlib.sha256(public).hexdigest()}}
    if chain:
        pems = re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", open(chain, "rb").read(), re.S)
        der = [openssl("x509", "-outform", "DER", data=pem) for pem in pems]
        material = {"x509CertificateChain": {"certificates": [{"rawBytes": b64(d)} for d in der]}}
    bundle = {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {**material, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": b64(payload),
            "payloadType": TYPE.decode(),
            "signatures": [{"sig": b64(openssl("dgst", "-" + hash, "-sign", key, data=signed)), "keyid": ""}],
        },
    }
    (root / "model.sig").write_text(json.dumps(bundle))


if __name__ == "__main__":
    main(*sys.argv[1:])

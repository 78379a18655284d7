"""Drives the S3 door with boto3: JSON on stdin with endpoint and keys, one line of JSON with what was seen on stdout."""
import io
import json
import os
import sys

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

given = json.load(sys.stdin)
s3 = boto3.client(
    "s3",
    endpoint_url=given["endpoint"],
    region_name=given["region"],
    aws_access_key_id=given["accessKeyId"],
    aws_secret_access_key=given["secretAccessKey"],
    config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
)


def code_of(call, **arguments):
    try:
        call(**arguments)
        return "no error"
    except ClientError as error:
        return error.response["Error"]["Code"]


seen = {}
s3.create_bucket(Bucket="boto", CreateBucketConfiguration={"LocationConstraint": given["region"]})
s3.head_bucket(Bucket="boto")
seen["location"] = s3.get_bucket_location(Bucket="boto")["LocationConstraint"]
seen["buckets"] = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
key = "ordner/ä ö+ü%20\n&<>/🦊"
put = s3.put_object(Bucket="boto", Key=key, Body=b"hello", Metadata={"colour": "blue"}, ContentType="text/x")
seen["put_checksum"] = put.get("ChecksumCRC32")
got = s3.get_object(Bucket="boto", Key=key, ChecksumMode="ENABLED")
seen["got"] = [got["Body"].read().decode(), got["Metadata"], got["ContentType"], got.get("ChecksumCRC32")]
seen["range"] = s3.get_object(Bucket="boto", Key=key, Range="bytes=1-2")["Body"].read().decode()
seen["keys_v2"] = [one["Key"] == key for one in s3.list_objects_v2(Bucket="boto")["Contents"]]
seen["keys_v1"] = [one["Key"] == key for one in s3.list_objects(Bucket="boto")["Contents"]]
for algorithm in ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]:
    try:
        s3.put_object(Bucket="boto", Key="checked/" + algorithm, Body=b"checked", ChecksumAlgorithm=algorithm)
        seen["algorithm " + algorithm] = "stored"
    except Exception as error:  # CRC32C and CRC64NVME need the CRT, which may not be there.
        seen["algorithm " + algorithm] = type(error).__name__
seen["unseekable"] = None
s3.upload_fileobj(io.BytesIO(b"x" * 100), "boto", "pages/file")
for number in range(25):
    s3.put_object(Bucket="boto", Key=f"pages/{number:03}", Body=b"")
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="boto", Prefix="pages/", PaginationConfig={"PageSize": 10})
seen["paged"] = [len(page["Contents"]) for page in pages]
old_pages = s3.get_paginator("list_objects").paginate(Bucket="boto", Delimiter="/", PaginationConfig={"PageSize": 1})
seen["folders"] = sorted(one["Prefix"].split("/")[0] for page in old_pages for one in page.get("CommonPrefixes", []))
big = os.urandom(17 * 1024 * 1024)
s3.upload_fileobj(io.BytesIO(big), "boto", "big", Config=TransferConfig(multipart_threshold=6 << 20, multipart_chunksize=6 << 20))
back = io.BytesIO()
s3.download_fileobj("boto", "big", back)
seen["big"] = [back.getvalue() == big, s3.head_object(Bucket="boto", Key="big")["ETag"].endswith('-3"')]
s3.copy_object(Bucket="boto", Key="copy", CopySource={"Bucket": "boto", "Key": key})
seen["copy"] = s3.get_object(Bucket="boto", Key="copy")["Body"].read().decode()
deleted = s3.delete_objects(Bucket="boto", Delete={"Objects": [{"Key": key}, {"Key": "copy"}, {"Key": "never"}]})
seen["deleted"] = len(deleted["Deleted"])
seen["errors"] = [
    code_of(s3.get_object, Bucket="boto", Key="none"),
    code_of(s3.head_object, Bucket="boto", Key="none"),
    code_of(s3.get_object, Bucket="boto-none", Key="none"),
    code_of(s3.create_bucket, Bucket="boto", CreateBucketConfiguration={"LocationConstraint": given["region"]}),
    code_of(s3.delete_bucket, Bucket="boto"),
    code_of(s3.get_bucket_acl, Bucket="boto"),
    code_of(s3.put_object, Bucket="boto", Key="bad", Body=b"x", ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg=="),
    code_of(s3.complete_multipart_upload, Bucket="boto", Key="k", UploadId="0" * 32, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": "x"}]}),
]
del seen["unseekable"]
print(json.dumps(seen))

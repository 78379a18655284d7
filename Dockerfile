# The platform with all that it needs in one container, for machines without Linux (README.md). It makes sandboxes inside, for which it
# needs the privileges of scripts/image-privileges.mjs. BASE may be any image of Debian 12, for instance one that was made by debootstrap (npm run image -- --base debootstrap).
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates git nodejs npm \
    runc tini containernetworking-plugins nftables iproute2 e2fsprogs procps python3 python3-pip python3-venv locales \
  && rm -rf /var/lib/apt/lists/*
# Node trusts whom the base trusts, which may be more than Debian does.
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /opt/agentplatform
COPY . .
# Installs the npm packages, among them the pinned Node.
RUN node scripts/bootstrap.mjs platform --help > /dev/null
ENV AGENTPLATFORM_CACHE=/opt/agentplatform/.agentplatform/cache
# A container does not see loop devices that are made after its start.
ENV AGENTPLATFORM_SANDBOX_DISK=tmpfs
VOLUME /opt/agentplatform/.agentplatform
EXPOSE 4100
ENTRYPOINT ["images/platform/entrypoint.sh"]

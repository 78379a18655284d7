import type { Tool } from '../tools/tool.ts';
import type { ShapeTable } from './shape.ts';

/** The place of a parameter in a request. */
export type ParameterPlace = 'path' | 'query' | 'header' | 'cookie';

/** How a value is written (OpenAPI, "Style Values"). */
export type ParameterStyle = 'matrix' | 'label' | 'simple' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject';

/** One argument of the tool that goes into the path, the query, a header or a cookie. */
export interface HttpParameter {
  /** Its name among the tool's arguments. */
  argument: string;
  /** Its name in the request. A prefix, where `each` is `prefixed`. */
  name: string;
  in: ParameterPlace;
  style: ParameterStyle;
  explode: boolean;
  /** Reserved characters stay as they are, apart from those that would end the value. */
  allowReserved?: boolean;
  /** Media type of the value as a whole, which is then written in that type, regardless of the style. */
  content?: string;
  /** Header only: a list as HTTP has it, its items quoted where they need it, or as they are. */
  items?: 'quoted' | 'bare';
  /** Header only: the text goes in base64. */
  base64?: boolean;
  /** Path only: slashes stand for themselves (a greedy label). */
  greedy?: boolean;
  /** Each entry of the object is a parameter of its own: of its own name, or behind `name` as a prefix. */
  each?: 'named' | 'prefixed';
}

/** One argument that is a field of the body. */
export interface BodyField {
  argument: string;
  /** Its name in the body. */
  name: string;
  /** How it is written in a form; JSON text unless said. */
  style?: ParameterStyle;
  explode?: boolean;
  allowReserved?: boolean;
  /** Media type of its part of a form. */
  content?: string;
  /** The argument is base64 and its bytes are sent. */
  binary?: boolean;
}

/** How the body is written; `xml` and `aws-query` follow `shape`. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text' | 'binary' | 'xml' | 'aws-query';

/** The body of a request: one argument as a whole, or an object of several. */
export interface HttpBody {
  kind: BodyKind;
  /** `content-type` as it is sent, without the boundary of `multipart`. */
  mediaType: string;
  /** The argument that is the body. Then `fields` say only how some of its fields are written in a form. */
  whole?: string;
  /** The arguments that are its fields. */
  fields?: BodyField[];
  /** Fields that are always sent. */
  constants?: { [name: string]: string };
  /** An empty object is sent when no field is given. */
  always?: boolean;
  /** The shape of the body among `shapes`. */
  shape?: string;
}

/** How a tool's call becomes an HTTP request. Plain JSON: it is stored. */
export interface HttpTemplate {
  /** In capitals. */
  method: string;
  /** Absolute, without query, fragment, user and closing slash. */
  server: string;
  /** Begins with a slash; a parameter stands in braces. */
  path: string;
  parameters: HttpParameter[];
  /** The service of AWS that it is for, as signatures name it, where the document says so. */
  service?: string;
  /** Query parameters and headers that are the same for each call. */
  query?: [name: string, value: string][];
  headers?: { [name: string]: string };
  body?: HttpBody;
  /** The hash that each request with a body has in a header. */
  checksum?: 'content-md5';
  /** Where the credentials go: no argument may be sent there. Names of headers in small letters. */
  credentials?: CredentialPlace[];
  answer: {
    /** `accept` as it is sent. */
    accept?: string;
    /** The output schema has the answer under `result`, since it need be no object. */
    wrapped?: boolean;
    /** The shape of an XML answer among `shapes`, and the elements around it. */
    shape?: string;
    within?: string[];
    /** Its outermost element is the one member of the shape. */
    unwrapped?: boolean;
  };
  /** Shapes of bodies that are no JSON. */
  shapes?: ShapeTable;
}

/** A header, query parameter or cookie that carries a credential. */
export interface CredentialPlace {
  in: 'header' | 'query' | 'cookie';
  name: string;
}

/** A tool that is called by one HTTP request. */
export interface HttpTool extends Tool {
  http: HttpTemplate;
}
